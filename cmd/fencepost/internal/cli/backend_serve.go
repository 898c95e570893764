package cli

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/tfstate"
)

// lockInfo describes a lock as Terraform does.
type lockInfo struct {
	ID, Operation, Info, Who, Version, Created, Path string
}

// refused is an answer without success. Terraform repeats a request that is answered with 5xx.
type refused struct {
	status int
	holder lockInfo
}

func (r *refused) Error() string { return http.StatusText(r.status) }

// ServeHTTP answers a request of Terraform, which shows people no more than the status.
func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, password, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(password), []byte(b.password)) != 1 {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	b.used.Store(true)
	limit := int64(tfstate.MaxSize)
	if r.Method == methodLock || r.Method == methodUnlock {
		limit = maxInfo
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		say("a request of Terraform, of at most %d KiB: %s", limit>>10, sentence(err))
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	answer, err := b.answer(r, body)
	known := new(refused)
	switch {
	case errors.As(err, &known):
		w.WriteHeader(known.status)
		_ = json.NewEncoder(w).Encode(known.holder)
	case err != nil:
		say("the state of %s cannot be used: %s", b.lock, sentence(err))
		w.WriteHeader(http.StatusServiceUnavailable)
	case len(answer) == 0 && r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write(answer)
	}
}

func (b *backend) answer(r *http.Request, body []byte) ([]byte, error) {
	switch r.Method {
	case methodLock:
		return nil, b.take(r.Context(), body)
	case methodUnlock:
		return nil, b.giveBack(body)
	}
	// Terraform writes the state after a signal, too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), stateTimeout)
	defer cancel()
	switch r.Method {
	case http.MethodGet:
		return b.state.Read(ctx)
	case http.MethodPost:
		if !isState(body, r.Header.Get("Content-Md5")) {
			say("the state of %s was not written: the request has none, or a damaged one", b.lock)
			return nil, &refused{status: http.StatusBadRequest}
		}
		return nil, b.write(ctx, r.URL.Query().Get("ID"), body)
	case http.MethodDelete:
		_, info := b.now()
		return nil, b.write(ctx, info.ID, nil)
	}
	return nil, &refused{status: http.StatusMethodNotAllowed}
}

// isState reports whether a body is a state, which OpenTofu may have encrypted, with its checksum.
func isState(body []byte, checksum string) bool {
	var state struct {
		Version   json.RawMessage
		Encrypted json.RawMessage `json:"encrypted_data"`
	}
	if json.Unmarshal(body, &state) != nil || state.Version == nil && state.Encrypted == nil {
		return false
	}
	sum := md5.Sum(body) // as Terraform does
	return checksum == "" || checksum == base64.StdEncoding.EncodeToString(sum[:])
}

// take acquires the lock, and raises the fence of the state before Terraform reads it.
func (b *backend) take(ctx context.Context, body []byte) error {
	var info lockInfo
	if json.Unmarshal(body, &info) != nil || info.ID == "" {
		return &refused{status: http.StatusBadRequest}
	}
	b.turn.Lock()
	defer b.turn.Unlock()
	if held, of := b.now(); held != nil && held.Check() == nil {
		return &refused{http.StatusLocked, of} // to another process of the command
	}
	held, err := b.acquire(ctx, &info)
	if err != nil {
		return b.notAcquired(err)
	}
	b.keep(held, info)
	if err = b.raise(ctx, held.Fence()); err == nil {
		err = b.guarded(ctx)
	}
	if err != nil {
		b.drop(held)
	}
	if stale := new(tfstate.StaleError); errors.As(err, &stale) {
		say("the state of %s: %s; another server, a lock of another name, or one of before a restore "+
			"had it", b.lock, stale)
		return &refused{status: http.StatusFailedDependency}
	}
	return err
}

func (b *backend) raise(ctx context.Context, fence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	return b.state.Raise(ctx, fence)
}

// guarded returns when the guard of the command knows the lock.
func (b *backend) guarded(ctx context.Context) error {
	looked := make(chan struct{})
	select {
	case b.changes <- looked:
		<-looked
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acquire queues for the lock until ctx ends: Terraform has ended, or is to end.
func (b *backend) acquire(ctx context.Context, info *lockInfo) (*client.Held, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	c := b.claim
	c.Metadata = map[string]string{"command": "terraform"}
	for key, value := range map[string]string{
		"id": info.ID, "operation": info.Operation, "who": info.Who, "version": info.Version,
	} {
		c.Metadata[key] = strings.ToValidUTF8(plain(value[:min(len(value), 256)]), "")
	}
	held, err := c.seek(life, b.client, []string{b.lock})
	if !stop() && err == nil {
		release(held)
		err = ctx.Err()
	}
	return held, err
}

// notAcquired describes the holder, or is an answer that Terraform does not repeat.
func (b *backend) notAcquired(err error) error {
	say("%s: %s", b.lock, sentence(err))
	known := new(client.Error)
	if !errors.As(err, &known) || len(known.Holders) == 0 {
		return &refused{status: http.StatusFailedDependency}
	}
	return &refused{http.StatusLocked, infoOf(b.lock, &known.Holders[0])}
}

// infoOf describes the lock of a holder, which may be no Terraform.
func infoOf(lock string, h *api.Holder) lockInfo {
	about, fence := h.Metadata, strconv.FormatUint(h.Fence, 10)
	return lockInfo{
		ID:        cmp.Or(about["id"], fence), // without one, Terraform does not try again
		Operation: cmp.Or(about["operation"], about["command"]), Who: cmp.Or(about["who"], h.Holder),
		Version: about["version"], Created: string(h.Since), Path: lock,
		Info: fmt.Sprintf("holder %s, fence %s", h.Holder, fence),
	}
}

// giveBack releases the lock of the body. The body of force-unlock is empty.
func (b *backend) giveBack(body []byte) error {
	var info lockInfo
	_ = json.Unmarshal(body, &info) // without an ID it is any lock
	held, of := b.now()
	if held == nil {
		say("this command does not hold %s; an operator takes it from its holder: "+
			"fencepost revoke --reason 'WHY, 10 characters or more' %s", b.lock, b.lock)
		return &refused{status: http.StatusConflict}
	}
	if info.ID != "" && info.ID != of.ID {
		return &refused{http.StatusConflict, of}
	}
	b.drop(held)
	return nil
}

// write replaces the state, or deletes it without data, for the holder of the lock with the ID. A
// holder whose lease has ended may write until there is a later one: the fence decides.
func (b *backend) write(ctx context.Context, id string, data []byte) error {
	held, of := b.now()
	if held == nil || id != of.ID {
		say("the state of %s was not written: Terraform has not locked it (-lock=false); if no one "+
			"else has written it since, run this command with terraform state push errored.tfstate", b.lock)
		return &refused{status: http.StatusConflict}
	}
	return b.checked(ctx, b.state.Write(ctx, held.Fence(), data))
}

// checked reports a refused write to people and operators.
func (b *backend) checked(ctx context.Context, err error) error {
	stale := new(tfstate.StaleError)
	if !errors.As(err, &stale) {
		return err
	}
	say("the state of %s was not written: %s", b.lock, stale)
	b.late.Store(true)
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	_ = b.client.StaleWrite(ctx, b.lock, stale.Fence, stale.Known, "terraform state") // said above
	return &refused{status: http.StatusConflict}
}

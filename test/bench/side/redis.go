package side

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/fencepost/fencepost/store"
	"github.com/fencepost/fencepost/test/bench/load"
)

// redisRelease deletes the key if it still has the token of its client.
const redisRelease = `if redis.call("get", KEYS[1]) == ARGV[1] then
return redis.call("del", KEYS[1]) else return 0 end`

// redisRetry bounds the random pause before a client tries a lock again that another one has:
// Redis has no queue.
const redisRetry = 5 * time.Millisecond

// redisWorker locks as the documentation of Redis advises for one server: SET with NX and PX,
// and a script that compares and deletes.
type redisWorker struct {
	line
	number, tries int
	script        string // the digest of redisRelease
	name, token   string
	text          []byte
}

// NewRedisWorkers returns n clients of the server at address.
func NewRedisWorkers(
	ctx context.Context, c *Connections, address string, n int,
) ([]load.Worker, error) {
	first := &redisWorker{line: newLine(c, address)}
	script, err := first.call(ctx, "SCRIPT", "LOAD", redisRelease)
	if err != nil {
		return nil, err
	}
	workers := make([]load.Worker, n)
	for i := range workers {
		workers[i] = &redisWorker{line: newLine(c, address), number: i, script: script}
	}
	return workers, nil
}

func (w *redisWorker) Acquire(ctx context.Context, name string) (int64, error) {
	w.tries++
	w.name, w.token = name, strconv.Itoa(w.number)+"-"+strconv.Itoa(w.tries)
	ttl := strconv.Itoa(ttlSeconds * 1000)
	for {
		answer, err := w.call(ctx, "SET", name, w.token, "NX", "PX", ttl)
		if err != nil || answer == "OK" {
			return 0, err
		}
		if err := store.Pause(ctx, rand.N(redisRetry)); err != nil {
			return 0, err
		}
	}
}

func (w *redisWorker) Release(ctx context.Context) error {
	answer, err := w.call(ctx, "EVALSHA", w.script, "1", w.name, w.token)
	if err == nil && answer != "1" {
		err = fmt.Errorf("%s is no longer the lock of this client", w.name)
	}
	return err
}

// call sends a command, and returns its answer without its type; "" stands for none.
func (w *redisWorker) call(ctx context.Context, command ...string) (answer string, err error) {
	w.text = strconv.AppendInt(append(w.text[:0], '*'), int64(len(command)), 10)
	for _, word := range command {
		w.text = strconv.AppendInt(append(w.text, "\r\n$"...), int64(len(word)), 10)
		w.text = append(append(w.text, "\r\n"...), word...)
	}
	w.text = append(w.text, "\r\n"...)
	err = w.exchange(ctx, w.text, func() (err error) {
		answer, err = w.read()
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", command[0], err)
	}
	return answer, nil
}

func (w *redisWorker) read() (string, error) {
	head, err := w.reader.ReadString('\n')
	if err != nil {
		return "", err
	}
	head = strings.TrimSuffix(head, "\r\n")
	switch {
	case head == "" || head[0] == '-':
		return "", errors.New(head)
	case head == "$-1":
		return "", nil
	case head[0] != '$':
		return head[1:], nil
	}
	n, err := strconv.Atoi(head[1:])
	if err != nil {
		return "", err
	}
	bulk := make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(w.reader, bulk)
	return string(bulk[:n]), err
}

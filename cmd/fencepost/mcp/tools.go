package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
)

// States of a lock for this session.
const (
	held    = "held"
	waiting = "waiting"
	busy    = "busy"
	lost    = "lost"
)

const acquireText = `Acquire a named lock and wait for it. Agree on the name with the others who
share the thing: repo:website, browser, env:staging.

"state" of the answer is:
- held: the lock is yours until you release it. "fence" is a number that grows with every grant.
  Give it to what you write to (a header, a column, a commit message): a resource that rejects a
  smaller fence than it has seen is safe from a writer that lost the lock and does not know yet.
- waiting: others are in front. "position" 1 is next. Call acquire again to wait on; your position
  is kept. If you do not call again within a minute of the grant, the next in line gets the lock.
  If you do not want it any more, call release.
- busy: wait_seconds was 0 and the lock is held. You are not in the queue.

The lock is renewed while this session lives. It can be lost all the same: the server was not
reachable, an operator revoked it, the machine slept. Every answer lists such locks under "lost".
A lost lock must stop the work: another may hold it already.`

const releaseText = `Release a lock, or leave its queue. Do it as soon as the work is done, also
when it failed. An error says that the lock was lost before: another may have worked at the same
time, so check what you wrote.`

const statusText = `Show what this session holds and waits for. With a name, show that lock's
first 10 holders and waiters too. If "release_requested" is there, a waiter asks you to finish
soon.`

const listText = `List the locks that are in use, at most 100. A prefix selects names.`

const whoBlocksText = `Say in sentences which holders a lock has and why, which waiters, and whether the
holders themselves wait for other locks.`

func (s *session) addTools(server *sdk.Server) {
	tool(s, server, "acquire", acquireText, false, s.acquire)
	tool(s, server, "release", releaseText, false, s.release)
	tool(s, server, "status", statusText, true, s.status)
	tool(s, server, "list", listText, true, s.list)
	tool(s, server, "who_blocks", whoBlocksText, true, s.whoBlocks)
}

func tool[In, Out any](
	s *session, server *sdk.Server, name, text string, reads bool,
	call func(context.Context, In) (Out, error),
) {
	harmless := false
	sdk.AddTool(server, &sdk.Tool{
		Name: name, Description: text, Annotations: &sdk.ToolAnnotations{
			ReadOnlyHint: reads, IdempotentHint: true, DestructiveHint: &harmless,
		},
		InputSchema: schema[In](), OutputSchema: schema[Out](),
	}, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		s.calls.Add(1)
		defer s.calls.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		out, err := call(ctx, in)
		return nil, out, err
	})
}

// schema describes T. A pointer or a slice has one type there, not null as a second: some clients
// reject a list of types, and no answer has null.
func schema[T any]() *jsonschema.Schema {
	root, err := jsonschema.For[T](nil)
	if err != nil {
		panic(err) // of a type in this file
	}
	withoutNull(root)
	return root
}

func withoutNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, property := range s.Properties {
		withoutNull(property)
	}
	if s.Items != nil {
		withoutNull(s.Items)
	}
}

type acquireInput struct {
	Name    string `json:"name" jsonschema:"letters, digits and . _ : @ = + -, at most 200"`
	Wait    *int   `json:"wait_seconds,omitempty" jsonschema:"0 to 50; 30 by default"`
	Purpose string `json:"purpose,omitempty" jsonschema:"what you need the lock for; others see it"`
	Mode    string `json:"mode,omitempty" jsonschema:"exclusive (default), shared or semaphore"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many may hold a semaphore at once"`
}

type acquired struct {
	Name     string       `json:"name"`
	State    string       `json:"state" jsonschema:"held, waiting or busy"`
	Fence    uint64       `json:"fence,omitempty"`
	Position int          `json:"position,omitempty" jsonschema:"1 is next"`
	Waiting  int          `json:"waiting,omitempty" jsonschema:"how many wait in all"`
	Holders  []api.Holder `json:"holders,omitempty"`
	Lost     []string     `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (in *acquireInput) wait() (time.Duration, error) {
	if in.Wait == nil {
		return defaultWait, nil
	}
	wait := time.Duration(*in.Wait) * time.Second
	if *in.Wait < 0 || wait > maxWait {
		return 0, fmt.Errorf("wait_seconds is 0 to %.0f", maxWait.Seconds())
	}
	return wait, nil
}

func (in *acquireInput) options(holder string) client.Options {
	o := client.Options{TTL: ttl, Wait: queueFor, Holder: holder, Mode: in.Mode, Limit: in.Limit}
	if in.Purpose != "" {
		o.Metadata = map[string]string{"purpose": in.Purpose}
	}
	return o
}

func (s *session) acquire(ctx context.Context, in acquireInput) (*acquired, error) {
	wait, err := in.wait()
	if err != nil {
		return nil, err
	}
	c, err := s.take(in.Name)
	if err != nil {
		return nil, err
	}
	defer s.put(in.Name, c)
	state, err := s.claim(ctx, c, &in, wait)
	switch {
	case err != nil:
		return nil, err
	case state == held:
		return &acquired{Name: in.Name, State: held, Fence: c.held.Fence(), Lost: s.lost()}, nil
	}
	return s.behind(in.Name, state)
}

// claim makes one attempt to hold the lock, and returns its state.
func (s *session) claim(
	ctx context.Context, c *claim, in *acquireInput, wait time.Duration,
) (state string, err error) {
	switch {
	case s.isFull(c):
		return "", fmt.Errorf("this session has %d locks, the most it may: release one first", maxLocks)
	case c.held != nil:
		if err := c.held.Check(); err != nil {
			c.held = nil
			return "", fmt.Errorf("stop the work that needs it, then you may acquire again: %w", err)
		}
		return held, nil
	case c.pending == nil && wait == 0:
		c.held, err = s.client.TryLock(ctx, in.Name, in.options(s.holder))
		if client.CodeOf(err) == api.Held {
			return busy, nil
		}
		return c.unlessCancelled(ctx, err)
	case c.pending == nil:
		if c.pending, err = s.client.AsyncAcquire(ctx, in.Name, "", in.options(s.holder)); err != nil {
			return "", err
		}
	}
	return c.await(ctx, max(wait, time.Second))
}

// await waits for the grant. If the time is over first, the entry keeps its position. If the call
// is cancelled, it leaves the queue.
func (c *claim) await(ctx context.Context, wait time.Duration) (string, error) {
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel() // this does not end the renewals of what is held
	got, err := c.pending.Wait(limited)
	switch code := client.CodeOf(err); {
	case err == nil:
		c.held, c.pending = got, nil
	case code == client.Cancelled && ctx.Err() == nil:
		return waiting, nil
	case code == api.Lost, code == api.TimedOut, code == api.Deadlock, code == api.ModeMismatch:
		c.pending = nil
		return "", err // after other errors the entry may still be queued
	}
	return c.unlessCancelled(ctx, err)
}

// unlessCancelled releases the lock if the call was cancelled: the agent gets no answer, and the
// session would renew the lock until its end.
func (c *claim) unlessCancelled(ctx context.Context, err error) (string, error) {
	if ctx.Err() != nil {
		c.leave(ctx)
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", err
	}
	return held, nil
}

// behind names the entries in front of the session.
func (s *session) behind(name, state string) (*acquired, error) {
	ctx, cancel := context.WithTimeout(s.ctx, lookTimeout)
	defer cancel()
	look, err := s.client.Look(ctx, name)
	if err != nil {
		return nil, err
	}
	a := &acquired{
		Name: name, State: state, Waiting: look.Waiting, Holders: firstOf(look.Holders), Lost: s.lost(),
	}
	for _, w := range look.Waiters {
		if w.Holder == s.holder {
			a.Position = w.Position
		}
	}
	return a, nil
}

type releaseInput struct {
	Name string `json:"name"`
}

type released struct {
	Name string   `json:"name"`
	Was  string   `json:"was" jsonschema:"held or waiting"`
	Lost []string `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) release(ctx context.Context, in releaseInput) (*released, error) {
	c, err := s.take(in.Name)
	if err != nil {
		return nil, err
	}
	defer s.put(in.Name, c)
	was, err := c.release(ctx)
	if err != nil {
		return nil, err
	}
	return &released{Name: in.Name, Was: was, Lost: s.lost()}, nil
}

func (c *claim) release(ctx context.Context) (was string, err error) {
	switch {
	case c.pending != nil:
		was, err = waiting, c.pending.Leave(ctx)
	case c.held != nil:
		was, err = held, c.held.Release()
	default:
		return "", errors.New("this session neither holds this lock nor waits for it")
	}
	c.pending, c.held = nil, nil
	return was, err
}

type statusInput struct {
	Name string `json:"name,omitempty"`
}

type status struct {
	Mine []mine    `json:"mine"`
	Lock *api.Lock `json:"lock,omitempty"`
}

func (s *session) status(ctx context.Context, in statusInput) (*status, error) {
	if in.Name == "" {
		return &status{Mine: s.own()}, nil
	}
	look, err := s.client.Look(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	look.Holders, look.Waiters = firstOf(look.Holders), firstOf(look.Waiters)
	return &status{Mine: s.own(), Lock: look}, nil
}

// firstOf bounds how many holders or waiters of a lock an answer lists.
func firstOf[T any](all []T) []T { return all[:min(len(all), maxNamed)] }

type listInput struct {
	Prefix string `json:"prefix,omitempty"`
}

type listed struct {
	Locks     []api.LockSummary `json:"locks"`
	Truncated bool              `json:"truncated,omitempty" jsonschema:"more are in use than listed"`
	Lost      []string          `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) list(ctx context.Context, in listInput) (*listed, error) {
	all := &listed{Locks: []api.LockSummary{}, Lost: s.lost()}
	for l, err := range s.client.List(ctx, in.Prefix, "") {
		switch {
		case err != nil:
			return nil, err
		case len(all.Locks) == maxList:
			all.Truncated = true
			return all, nil
		}
		all.Locks = append(all.Locks, l)
	}
	return all, nil
}

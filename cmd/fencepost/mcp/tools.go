package mcp

import (
	"context"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fencepost/fencepost/api"
)

// States of a lock for this session.
const (
	held    = "held"
	waiting = "waiting"
	busy    = "busy"
	lost    = "lost"
)

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
	tool(s, server, "claim", claimText, false, s.claim)
	tool(s, server, "unclaim", unclaimText, false, s.unclaim)
	tool(s, server, "claims", claimsText, true, s.claims)
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

type releaseInput struct {
	Name string `json:"name"`
}

type released struct {
	Name string   `json:"name"`
	Was  string   `json:"was" jsonschema:"held or waiting"`
	Lost []string `json:"lost,omitempty" jsonschema:"locks whose work you must stop"`
}

func (s *session) release(ctx context.Context, in releaseInput) (*released, error) {
	e, err := s.take(in.Name)
	if err != nil {
		return nil, err
	}
	defer s.put(in.Name, e)
	was, err := e.release(ctx)
	if err != nil {
		return nil, err
	}
	return &released{Name: in.Name, Was: was, Lost: s.lost()}, nil
}

func (e *entry) release(ctx context.Context) (was string, err error) {
	switch {
	case e.pending != nil:
		was, err = waiting, e.pending.leave()
	case e.held != nil:
		was, err = held, e.held.Release(ctx)
	default:
		return "", errors.New("this session neither holds this lock nor waits for it")
	}
	e.pending, e.held = nil, nil
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

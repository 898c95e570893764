package fencehttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// Header is the header in which a holder sends its fence.
const Header = "Fence"

const greatest = 1<<53 - 1 // of all fences

// Store keeps the greatest fence of each resource, at least as durable as the data.
type Store interface {
	// Raise stores the fence if it is greater than that of the resource, and returns the greatest.
	// It is atomic.
	Raise(ctx context.Context, resource string, fence uint64) (greatest uint64, err error)
}

// Stale is what the guard refused.
type Stale struct {
	Resource         string
	Presented, Known uint64
}

// Guard checks the fence of requests.
type Guard struct {
	Store Store
	// Resource returns what the request reads or writes, or "" for what the guard does not check.
	// The default is the path, decoded and cleaned, without a slash at its end. All paths to what
	// one lock protects need the same resource.
	Resource func(*http.Request) string
	// Optional lets writes without a fence pass. Without it only GET, HEAD and OPTIONS do.
	Optional bool
	// OnStale is called before a stale request is answered: start the report of it in a goroutine.
	OnStale func(*http.Request, Stale)
}

// Wrap returns a handler that checks a request before next serves it. The guard raises the fence
// first, so that what next reads cannot change by an earlier holder.
func (g Guard) Wrap(next http.Handler) http.Handler {
	if g.Store == nil {
		panic("fencehttp: a Guard without a Store")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resource := g.resource(r)
		values := r.Header.Values(Header)
		if resource == "" || len(values) == 0 && (g.Optional || safe(r.Method)) {
			next.ServeHTTP(w, r)
			return
		}
		if len(values) == 0 {
			writeProblem(w, required())
			return
		}
		fence, ok := parse(strings.Join(values, ","))
		if !ok {
			writeProblem(w, invalid())
			return
		}
		g.check(w, r, next, resource, fence)
	})
}

func (g Guard) check(
	w http.ResponseWriter, r *http.Request, next http.Handler, resource string, fence uint64,
) {
	known, err := g.Store.Raise(r.Context(), resource, fence)
	switch {
	case err != nil:
		slog.ErrorContext(r.Context(), "the fence cannot be compared", "error", err)
		writeProblem(w, unavailable())
	case known > fence:
		if g.OnStale != nil {
			g.OnStale(r, Stale{Resource: resource, Presented: fence, Known: known})
		}
		writeProblem(w, stale(fence, known))
	default:
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), fenceKey{}, fence)))
	}
}

func (g Guard) resource(r *http.Request) string {
	if g.Resource == nil {
		return path.Clean("/" + r.URL.Path)
	}
	return g.Resource(r)
}

type fenceKey struct{}

// Fence returns the fence of the request that a handler serves. It is false if the guard let the
// request pass without one.
func Fence(ctx context.Context) (fence uint64, ok bool) {
	fence, ok = ctx.Value(fenceKey{}).(uint64)
	return fence, ok
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// parse reads a positive integer below 2^53, written in one way only.
func parse(text string) (uint64, bool) {
	fence, err := strconv.ParseUint(text, 10, 64)
	valid := err == nil && fence > 0 && fence <= greatest && strconv.FormatUint(fence, 10) == text
	return fence, valid
}

func required() problem {
	return problem{
		Status: http.StatusPreconditionRequired, Code: "fence_required",
		Detail: "A write needs the header Fence: the fence of the lock that its client holds.",
	}
}

func invalid() problem {
	return problem{
		Status: http.StatusBadRequest, Code: "invalid_fence",
		Detail: "The header Fence is one positive integer below 2^53.",
	}
}

func stale(presented, known uint64) problem {
	return problem{
		Status: http.StatusConflict, Code: "stale_fence", Presented: presented, Known: known,
		Detail: fmt.Sprintf("The request has the fence %d, and a later holder has sent %d. "+
			"The client does not hold the lock.", presented, known),
	}
}

func unavailable() problem {
	return problem{
		Status: http.StatusServiceUnavailable, Code: "fence_unavailable",
		Detail: "The service cannot compare the fence now. The request has no effect.",
	}
}

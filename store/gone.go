package store

import "context"

type goneKey struct{}

// Outlive returns a context that does not end with the request of ctx, because the outcome of an
// interrupted write is hard to learn. A store still withdraws an entry that it has not sent when
// that request ends. Enqueue then returns soon, and nothing was or will be written.
func Outlive(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), goneKey{}, ctx.Done())
}

// Gone returns a channel that is closed when the request of [Outlive] ends. It is nil, and so never
// closed, if there is none.
func Gone(ctx context.Context) <-chan struct{} {
	gone, _ := ctx.Value(goneKey{}).(<-chan struct{})
	return gone
}

// IsGone reports whether the request of [Outlive] has ended.
func IsGone(ctx context.Context) bool {
	select {
	case <-Gone(ctx):
		return true
	default:
		return false
	}
}

package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fencepost/fencepost/client"
)

const (
	showAfter = 300 * time.Millisecond // most locks are free
	showEvery = time.Second
	sayEvery  = time.Minute // without a terminal

	lookTimeout = 3 * time.Second
	noAnswer    = "waiting for the server, which does not answer"

	clearLine = "\r\x1b[K"
)

// showQueue shows a person the position in the queue, in one line, until ctx ends.
func showQueue(ctx context.Context, to *client.Client, names []string, holder string) {
	defer fmt.Fprint(os.Stderr, clearLine)
	for pause := showAfter; ; pause = showEvery {
		text := queueAfter(ctx, pause, to, names, holder)
		if ctx.Err() != nil {
			return
		}
		if text != "" {
			fmt.Fprintf(os.Stderr, clearLine+"fencepost: %s", plain(text))
		}
	}
}

// logQueue says each minute why the wait goes on, and soon if the server does not answer, until ctx
// ends.
func logQueue(
	ctx context.Context, to *client.Client, names []string, holder string,
	say func(format string, args ...any),
) {
	for pause := showAfter; ; pause = sayEvery {
		text := queueAfter(ctx, pause, to, names, holder)
		if ctx.Err() != nil {
			return
		}
		if text == noAnswer || text != "" && pause == sayEvery {
			say("%s", plain(text))
		}
	}
}

// queueAfter returns what [queueOf] returns after the pause.
func queueAfter(
	ctx context.Context, pause time.Duration, to *client.Client, names []string, holder string,
) string {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return queueOf(ctx, to, names, holder)
}

// queueOf returns a sentence on what the holder waits for, or "" if it does not wait.
func queueOf(ctx context.Context, to *client.Client, names []string, holder string) string {
	for _, name := range names {
		lock, err := to.Look(ctx, name)
		if client.CodeOf(err) == client.NoAnswer || ctx.Err() != nil {
			return noAnswer
		}
		if err != nil {
			return ""
		}
		for _, w := range lock.Waiters {
			if w.Holder != holder {
				continue
			}
			text := fmt.Sprintf("waiting for %s: position %d of %d", name, w.Position, lock.Waiting)
			if len(lock.Holders) > 0 {
				text += ", held by " + holders(lock.Holders)
			}
			return text
		}
	}
	return ""
}

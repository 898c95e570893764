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

	clearLine = "\r\x1b[K"
)

// showQueue shows a person the position in the queue, in one line, until the wait is done.
func showQueue(
	done <-chan struct{}, to *client.Client, names []string, holder string,
) {
	if !isTerminal(os.Stderr) {
		return
	}
	defer fmt.Fprint(os.Stderr, clearLine)
	for pause := showAfter; ; pause = showEvery {
		select {
		case <-time.After(pause):
		case <-done:
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), showEvery)
		if text := queueOf(ctx, to, names, holder); text != "" {
			fmt.Fprintf(os.Stderr, clearLine+"fencepost: %s", plain(text))
		}
		cancel()
	}
}

// queueOf returns a sentence on what the holder waits for, or "" if it does not wait.
func queueOf(ctx context.Context, to *client.Client, names []string, holder string) string {
	for _, name := range names {
		lock, err := to.Look(ctx, name)
		if client.CodeOf(err) == client.NoAnswer || ctx.Err() != nil {
			return "waiting for the server, which does not answer"
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

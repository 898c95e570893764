// Command figures measures what the Go client costs its process, see test/contest/README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/fencepost/fencepost/client"
)

const (
	locks  = 1000
	cycles = 2000
	batch  = 100 // of cycles; both sides take turns, so that they see the same machine
	watch  = time.Minute
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	url, _, _ := strings.Cut(os.Getenv("FENCEPOST_URL"), ",")
	c, err := client.New(client.Config{
		URLs: []string{url}, Token: client.Bearer(os.Getenv("FENCEPOST_TOKEN")),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	ratio, err := ratio(ctx, c, url)
	if err != nil {
		return err
	}
	before := resident()
	for i := range locks {
		if _, err := c.TryLock(ctx, fmt.Sprintf("figures:held:%d", i), client.Options{}); err != nil {
			return err
		}
	}
	bytes := (resident() - before) / locks
	begun, used := time.Now(), cpu()
	<-time.After(watch)
	fmt.Printf("held-cpu-percent %.2f\n", 100*float64(cpu()-used)/float64(time.Since(begun)))
	fmt.Printf("held-bytes %d\n", bytes)
	fmt.Printf("acquire-ratio %.2f\n", ratio)
	return nil
}

// ratio is how much more processor time a cycle takes by the client than by net/http.
func ratio(ctx context.Context, c *client.Client, url string) (float64, error) {
	var byClient, bare time.Duration
	for i := range cycles / batch {
		before := cpu()
		for range batch {
			held, err := c.TryLock(ctx, "figures:cycle", client.Options{})
			if err == nil {
				err = held.Release(ctx)
			}
			if err != nil {
				return 0, err
			}
		}
		between := cpu()
		for range batch {
			if err := bareCycle(ctx, url); err != nil {
				return 0, err
			}
		}
		if i > 0 { // the first warms up
			byClient, bare = byClient+between-before, bare+cpu()-between
		}
	}
	return float64(byClient) / float64(bare), nil
}

// bareCycle sends what the client sends.
func bareCycle(ctx context.Context, url string) error {
	url += "/locks/figures:cycle"
	answer, err := send(ctx, http.MethodPost, url, "", `{"ttl_seconds":30}`)
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(answer, `"token":"`)
	token, _, found := strings.Cut(rest, `"`)
	if !found {
		return errors.New("no token: " + answer)
	}
	_, err = send(ctx, http.MethodDelete, url, token, "")
	return err
}

func send(ctx context.Context, method, url, token, body string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("FENCEPOST_TOKEN"))
	if token != "" {
		request.Header.Set("Lock-Token", token)
	} else {
		request.Header.Set("Idempotency-Key", fmt.Sprintf("figures-%d", time.Now().UnixNano()))
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// resident returns the bytes of memory that this process has.
func resident() int {
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/statm")
	var size, pages int
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * os.Getpagesize()
}

package side

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Client sends any requests to Fencepost, one after the other.
type Client struct {
	http          *caller
	header, proof http.Header
}

// Ticket is what the client of an entry knows of it.
type Ticket struct {
	ID, Name, Token string
	Fence           int64
}

// Clients returns n of them, on a connection each.
func (f Fencepost) Clients(n int) []*Client {
	clients := make([]*Client, n)
	for i := range clients {
		authorization := []string{"Bearer " + f.Bearers[i%len(f.Bearers)]}
		clients[i] = &Client{
			newCaller(f.Connections, f.Bases[i%len(f.Bases)], nil),
			http.Header{"Authorization": authorization, "Content-Type": {"application/json"}},
			http.Header{"Authorization": authorization, "Lock-Token": {""}},
		}
	}
	return clients
}

// askAgain is after how long a client asks again, and askAtMost how often.
const (
	askAgain  = 100 * time.Millisecond
	askAtMost = 100
)

// Ask posts an acquire. It is granted at once, or is to wait and is told so. Where the server
// has no room, or its store does not answer, and nothing came of it, it is sent again, as
// clients do; refused is how often.
func (c *Client) Ask(ctx context.Context, name string, body []byte) (t Ticket, granted bool, refused int, err error) {
	for {
		t, granted, err = c.ask(ctx, name, body)
		if refused == askAtMost || !errors.Is(err, errNoEffect) {
			return t, granted, refused, err
		}
		refused++
		again := time.NewTimer(askAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return t, false, refused, ctx.Err()
		}
	}
}

func (c *Client) ask(ctx context.Context, name string, body []byte) (t Ticket, granted bool, err error) {
	status, err := c.http.send(ctx, http.MethodPost, "/locks/"+name, c.header, body)
	if err != nil {
		return t, false, err
	}
	answer := c.http.answer.Bytes()
	if status != http.StatusCreated && status != http.StatusAccepted {
		return t, false, unexpected(http.MethodPost, status, answer)
	}
	if err := json.Unmarshal(answer, &t); err != nil {
		return t, false, fmt.Errorf("read the entry: %w", err)
	}
	t.Name = name
	return t, status == http.StatusCreated, nil
}

// Post sends any other request that makes something, and returns what the answer tells of it,
// which is valid until the next request.
func (c *Client) Post(ctx context.Context, want int, path string, body []byte) ([]byte, error) {
	return c.http.expect(ctx, want, http.MethodPost, path, c.header, body)
}

// Renew keeps what was granted.
func (c *Client) Renew(ctx context.Context, t Ticket) error {
	_, err := c.http.expect(ctx, http.StatusOK, http.MethodPut, "/locks/"+t.Name+"/renew", c.with(t), nil)
	return err
}

// Release gives back what was granted.
func (c *Client) Release(ctx context.Context, t Ticket) error {
	_, err := c.http.expect(ctx, http.StatusNoContent, http.MethodDelete, "/locks/"+t.Name, c.with(t), nil)
	return err
}

func (c *Client) with(t Ticket) http.Header {
	c.proof["Lock-Token"][0] = t.Token
	return c.proof
}

package side

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fencepost/fencepost/store"
)

// Client takes and renews many locks on one connection.
type Client struct {
	http          *caller
	header, proof http.Header
}

// Ticket is what the client of an entry knows of it.
type Ticket struct {
	Name, Token string
	Fence       int64
}

// Clients returns n of them, on a connection each.
func (f Fencepost) Clients(n int) []*Client {
	clients := make([]*Client, n)
	for i := range clients {
		authorization := []string{"Bearer " + f.Bearers[i%len(f.Bearers)]}
		clients[i] = &Client{
			newCaller(f.Connections, f.Base, nil),
			http.Header{"Authorization": authorization, "Content-Type": {"application/json"}},
			http.Header{"Authorization": authorization, "Lock-Token": {""}},
		}
	}
	return clients
}

// Ask posts an acquire, which is granted at once or waits. If the server rejects it for now,
// Ask sends it again, as clients do.
func (c *Client) Ask(ctx context.Context, name string, body []byte) (Ticket, error) {
	const again, atMost = 100 * time.Millisecond, 100
	for tries := 0; ; tries++ {
		t, err := c.ask(ctx, name, body)
		if tries == atMost || !errors.Is(err, errNoEffect) {
			return t, err
		}
		if err := store.Pause(ctx, again); err != nil {
			return t, err
		}
	}
}

func (c *Client) ask(ctx context.Context, name string, body []byte) (Ticket, error) {
	status, err := c.http.send(ctx, http.MethodPost, "/locks/"+name, c.header, body)
	if err != nil {
		return Ticket{}, err
	}
	answer := c.http.answer.Bytes()
	if status != http.StatusCreated && status != http.StatusAccepted {
		return Ticket{}, unexpected(http.MethodPost, status, answer)
	}
	t := Ticket{Name: name}
	if err := json.Unmarshal(answer, &t); err != nil {
		return Ticket{}, fmt.Errorf("read the entry: %w", err)
	}
	return t, nil
}

// Renew keeps what was granted.
func (c *Client) Renew(ctx context.Context, t Ticket) error {
	c.proof["Lock-Token"][0] = t.Token
	_, err := c.http.expect(
		ctx, http.StatusOK, http.MethodPut, "/locks/"+t.Name+"/renew", c.proof, nil,
	)
	return err
}

package mcp

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fencepost/fencepost/api"
)

const (
	lockURI  = "fencepost://lock/"
	queueURI = "fencepost://queue/"
)

type queue struct {
	Name    string       `json:"name"`
	Waiting int          `json:"waiting"`
	Waiters []api.Waiter `json:"waiters"`
}

func (s *session) addResources(server *sdk.Server) {
	s.resource(server, "lock", lockURI, "A lock: its holders, its queue, its newest fence",
		func(l *api.Lock) any { return l })
	s.resource(server, "queue", queueURI, "The queue of a lock, in order",
		func(l *api.Lock) any { return queue{l.Name, l.Waiting, l.Waiters} })
}

func (s *session) resource(
	server *sdk.Server, name, prefix, text string, show func(*api.Lock) any,
) {
	server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: name, Description: text, MIMEType: "application/json", URITemplate: prefix + "{+name}",
	}, func(
		ctx context.Context, request *sdk.ReadResourceRequest,
	) (*sdk.ReadResourceResult, error) {
		uri := request.Params.URI
		lock, err := url.PathUnescape(strings.TrimPrefix(uri, prefix))
		if err != nil {
			return nil, sdk.ResourceNotFoundError(uri)
		}
		look, err := s.client.Look(ctx, lock)
		if err != nil {
			return nil, err
		}
		body, err := json.Marshal(show(look))
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
			{URI: uri, MIMEType: "application/json", Text: string(body)},
		}}, err
	})
}

package main

import "github.com/getkin/kin-openapi/openapi3"

const eventRef = "#/components/schemas/Event"

// addCallbacks says what the server sends to the URLs that a request gives it. Swagger 2.0
// has no word for that.
func addCallbacks(op *openapi3.Operation) {
	switch op.OperationID {
	case "createWebhook":
		op.Callbacks = openapi3.Callbacks{
			"event": callback(
				"{$request.body#/url}", "The event, signed with the secret of the webhook.",
			),
		}
	case "acquireLock", "acquireLockSet":
		op.Callbacks = openapi3.Callbacks{"grant": callback("{$request.body#/callback_url}",
			"The grant with the token of the entry, or its end without one, signed with the tenant's callback secret.")}
	}
}

func callback(to, description string) *openapi3.CallbackRef {
	post := openapi3.NewOperation()
	post.Summary, post.Description = "An event", description
	for _, header := range []struct{ name, about string }{
		{"webhook-id", "The id of the event, the same with every attempt."},
		{"webhook-timestamp", "When this attempt was made, in seconds since 1970."},
		{
			"webhook-signature",
			"The signatures of id, timestamp and body as in Standard Webhooks 1.0, separated by spaces.",
		},
	} {
		p := openapi3.NewHeaderParameter(header.name).WithRequired(true).WithSchema(
			openapi3.NewStringSchema(),
		)
		post.AddParameter(p.WithDescription(header.about))
	}
	body := openapi3.NewRequestBody().WithRequired(true).WithJSONSchemaRef(
		openapi3.NewSchemaRef(eventRef, nil),
	)
	post.RequestBody = &openapi3.RequestBodyRef{Value: body}
	post.Responses = openapi3.NewResponses(
		openapi3.WithName("2XX", openapi3.NewResponse().WithDescription("Delivered")),
		openapi3.WithStatus(
			410,
			&openapi3.ResponseRef{
				Value: openapi3.NewResponse().WithDescription("The receiver wants no more events"),
			},
		),
	)
	paths := openapi3.NewCallback(openapi3.WithCallback(to, &openapi3.PathItem{Post: post}))
	return &openapi3.CallbackRef{Value: paths}
}

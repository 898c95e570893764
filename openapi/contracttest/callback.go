package contracttest

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
)

// CheckCallback holds a request that the server has made, whose body can be read, against the
// callback with a name of an operation.
func (c *Checker) CheckCallback(method, path, name string, made *http.Request) error {
	callback, err := c.callback(method, path, name)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range callback.Parameters {
		if p.Value.In == openapi3.ParameterInHeader && p.Value.Required && made.Header.Get(
			p.Value.Name,
		) == "" {
			errs = append(errs, fmt.Errorf("there is no header %s", p.Value.Name))
		}
	}
	in := &openapi3filter.RequestValidationInput{Request: made, Options: options()}
	return errors.Join(
		append(
			errs, openapi3filter.ValidateRequestBody(context.Background(), in, callback.RequestBody.Value),
		)...,
	)
}

// callback returns the one request of a callback.
func (c *Checker) callback(method, path, name string) (*openapi3.Operation, error) {
	item := c.doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil ||
		item.GetOperation(method).Callbacks[name] == nil {
		return nil, fmt.Errorf("the document has no callback %s of %s %s", name, method, path)
	}
	for _, to := range item.GetOperation(method).Callbacks[name].Value.Map() {
		if to.Post != nil && to.Post.RequestBody != nil {
			return to.Post, nil
		}
	}
	return nil, fmt.Errorf("the callback %s of %s %s is no POST with a body", name, method, path)
}

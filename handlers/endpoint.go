package handlers

import "net/http"

// reply is what an operation answers. The zero value is an answer that the operation has written
// itself.
type reply struct {
	status int
	body   any

	// A large body is made by later, when there is space for its size, in bytes.
	size  int
	later func() any
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func noContent() reply { return reply{status: http.StatusNoContent} }

// written is the answer of an operation that has written it.
func written() reply { return reply{} }

// large returns 200 with a body of at most about size bytes.
func large(size int, body func() any) reply {
	return reply{status: http.StatusOK, size: size, later: body}
}

// at returns a reply with the location of what the operation made.
func (r *request) at(location string, out reply) reply {
	r.set("Location", r.under(location))
	return out
}

// empty is a body that has no fields.
type empty struct{}

// get is the endpoint of an operation that reads no body: it calls the operation, and encodes what
// that returns.
func get(call func(*request) (reply, error)) handler {
	return func(r *request) error {
		out, err := call(r)
		if err != nil {
			return err
		}
		return r.answer(out)
	}
}

// send is the endpoint of an operation with a body: it decodes the body, calls the operation, and
// encodes what that returns.
func send[In any](call func(*request, *In) (reply, error)) handler {
	return func(r *request) error {
		in := new(In)
		if err := r.readJSON(in); err != nil {
			return err
		}
		out, err := call(r, in)
		if err != nil {
			return err
		}
		return r.answer(out)
	}
}

// maker makes an answer.
type maker func() (any, error)

// shown is the endpoint of what operators look at: it parses the query, and shares the answer with
// requests for the same.
func shown(parse func(*query) maker) handler {
	return func(r *request) error {
		q := r.query()
		body := parse(q)
		if q.err != nil {
			return q.err
		}
		return respondShared(r, body)
	}
}

// answer sends the reply of an operation.
func (r *request) answer(out reply) error {
	switch {
	case out.status == http.StatusNoContent:
		r.Status(out.status)
		r.Writer.Flush()
	case out.later != nil:
		return r.respondLarge(out.size, out.later)
	case out.status != 0:
		r.write(out.status, "application/json", out.body)
	}
	return nil
}

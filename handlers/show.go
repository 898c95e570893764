package handlers

// maker makes an answer.
type maker func() (any, error)

// show answers with what a maker makes, and shares it with requests for the same.
func (r *request) show(parse func(*request) (maker, error)) error {
	make, err := parse(r)
	if err != nil {
		return err
	}
	return r.respondShared(make)
}

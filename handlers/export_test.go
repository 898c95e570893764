package handlers

// InFlight is how many bytes of large answers are on their way.
func (r *Router) InFlight() int {
	r.endpoints.answers.mu.Lock()
	defer r.endpoints.answers.mu.Unlock()
	return r.endpoints.answers.all
}

// Since returns what a watcher is told who knows another answer: the keys of rows, and whether
// the order is another and the rest.
func Since(told, now any) (changed []string, order, page bool) {
	was, is := &rendering{value: told}, &rendering{value: now}
	return is.split().since(was.split())
}

// Fill counts as many bytes as a tenant may have on their way, and more.
func (r *Router) Fill(tenant string) { r.endpoints.answers.take(tenant, MaxAnswersOfTenant, true) }

// MaxAnswersOfTenant is how many bytes of large answers a tenant may have on their way.
const MaxAnswersOfTenant = maxAnswers / answerShares

// Kept is how many bytes of answers are kept for others who ask the same, by the count and as
// it is.
func (r *Router) Kept() (counted, kept int) {
	p := r.endpoints.pages
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.byKey {
		kept += len(one.text)
	}
	return p.bytes, kept
}

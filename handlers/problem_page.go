package handlers

import (
	"fmt"
	"html"
	"net/http"

	"github.com/fencepost/fencepost/api"
)

// problemPage is what a person sees who opens the type of a problem: title, code, status, advice.
const problemPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>%[1]s - Fencepost</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}</style>
<h1>%[1]s</h1>
<p><code>%[2]s</code>, HTTP status %[3]d</p>
<p>%[4]s</p>
</html>
`

// getProblem explains a code.
//
// @Summary  Read what a problem means
// @Produce  html
// @Param    code path string true "Code of the problem"
// @Success  200 {string} string "A page that explains the code"
// @Failure  404 {object} api.Problem "not_found"
// @Router   /problems/{code} [get]
func getProblem(r *request) error {
	code := api.Code(r.Param("code"))
	if !code.Known() {
		return nothingHere(r)
	}
	page := fmt.Sprintf(problemPage, html.EscapeString(code.Title()), code, code.Status(),
		html.EscapeString(code.Advice()))
	r.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	r.Data(http.StatusOK, "text/html; charset=utf-8", []byte(page))
	return nil
}

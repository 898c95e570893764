//go:build pending

package handlers_test

import "testing"

// TestDocsErrorsAreProblems: like all other errors.
func TestDocsErrorsAreProblems(t *testing.T) {
	t.Parallel()
	a := anonymous(t).start("GET", "/docs/nothing").raw()
	a.wantProblem(problem{code: "not_found", detail: "there is nothing at this path"})
}

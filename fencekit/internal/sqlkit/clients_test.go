package sqlkit_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/fencekit/internal/sqlkit"
)

// TestTextsHaveTheStatementsOfTheKit: clients and documents have the statements that the tests of
// the kit run on real servers.
func TestTextsHaveTheStatementsOfTheKit(t *testing.T) {
	const top = "../../../"
	clients := []string{
		"client/fencesql/fencesql.go",
		"clients/python/src/fencepost/fencing.py",
		"clients/typescript/src/fencing.ts",
		"clients/java/src/main/java/io/github/fencepost/fencing/SqlGuard.java",
		"clients/rust/src/fencing.rs",
	}
	guide := []string{"docs/concepts/leases-and-fences.md"}
	for _, c := range []struct {
		database, name string
		texts          []string
	}{
		{"postgresql", "raise", append(clients, guide...)},
		{"postgresql", "write", guide},
		{"postgresql", "read", guide},
		{"sqlite", "raise", clients},
		{"mysql", "raise", clients},
		{"mysql", "raised", clients},
	} {
		statement := sqlkit.Statements(":", "../../"+c.database+"/check.sql")[c.name]
		for _, name := range c.texts {
			if !strings.Contains(plain(sqlkit.Text(top+name)), plain(statement.SQL)) {
				t.Errorf("%s does not have %s of %s: %s", name, c.name, c.database, statement.SQL)
			}
		}
	}
}

var (
	joined    = regexp.MustCompile(`"\s*\+\s*"`) // texts of Java
	parameter = regexp.MustCompile(`%s|\?|\$\d|:(lock|fence|id|balance)`)
	space     = regexp.MustCompile(`\s+`)
)

// plain makes statements comparable.
func plain(text string) string {
	text = parameter.ReplaceAllString(joined.ReplaceAllString(text, ""), "?")
	return space.ReplaceAllString(text, " ")
}

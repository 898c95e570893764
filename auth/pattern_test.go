package auth_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/auth"
)

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"orders:1", "orders:1", true},
		{"orders:1", "orders:12", false},
		{"orders:1", "xorders:1", false},
		{"orders:*", "orders:1", true},
		{"orders:*", "orders:", true},
		{"orders:*", "orders", false},
		{"orders:*", "Orders:1", false},
		{"*:lock", "a:lock", true},
		{"*:lock", "a:locks", false},
		{"a*a", "a", false}, // prefix and suffix must not share a character
		{"a*a", "aa", true},
		{"ab*ba", "aba", false},
		{"*", "", true},
		{"a.c", "abc", false},
		{"a?c", "abc", false},
		{"[ab]", "a", false},
		{`\*`, `\x`, true}, // nothing escapes a star
		{"a+", "aa", false},
		{"", "", false},
	} {
		p, err := auth.ParsePattern(c.pattern)
		if (err != nil) != (c.pattern == "") {
			t.Fatalf("ParsePattern(%q) = %v", c.pattern, err)
		}
		if err == nil && p.Match(c.name) != c.want {
			t.Errorf("pattern %q matches %q: %v, want %v", c.pattern, c.name, !c.want, c.want)
		}
		if p.String() != c.pattern {
			t.Errorf("String() = %q, want %q", p.String(), c.pattern)
		}
	}
	for _, bad := range []string{strings.Repeat("a", 257), "**", "a*b*", "*a*"} {
		if _, err := auth.ParsePattern(bad); err == nil {
			t.Errorf("%.9q is accepted", bad)
		}
	}
}

// FuzzPattern compares the matcher with a regular expression.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{"orders:*", "orders:42"},
		{"*a*b*", "xxaxxb"},
		{"a*a", "a"},
		{"ab*ab*ab", "abab"},
		{"**", ""},
		{"*.*", "a.b"},
		{"a\n*", "a\nb"},
		{"\xff*", "\xffa"},
		{"*ab*b", "aab"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		p, err := auth.ParsePattern(text)
		if err != nil {
			if text != "" && len(text) <= 256 && strings.Count(text, "*") < 2 {
				t.Fatalf("ParsePattern(%q) = %v", text, err)
			}
			return
		}
		// A regular expression replaces bytes that are not UTF-8, so both sides
		// are compared as one character for each byte.
		pieces := strings.Split(wide(text), "*")
		for i := range pieces {
			pieces[i] = regexp.QuoteMeta(pieces[i])
		}
		want := regexp.MustCompile(`(?s)\A` + strings.Join(pieces, `.*`) + `\z`).MatchString(wide(name))
		if got := p.Match(name); got != want {
			t.Errorf("pattern %q matches %q: %v, want %v", text, name, got, want)
		}
	})
}

func wide(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, other string
		want           bool
	}{
		{"orders:*", "orders:eu-*", true},
		{"orders:*", "orders:1", true},
		{"orders:*", "orders:*", true},
		{"orders:*", "*", false},
		{"orders:*", "orders*", false},
		{"orders:*", "*orders:1", false},
		{"orders:1", "orders:1", true},
		{"orders:1", "orders:*", false},
		{"*", "*", true},
		{"*", "a", true},
		{"a*b", "a*", false},
		{"a*b", "*b", false},
	} {
		p, other := must(auth.ParsePattern(c.pattern)), must(auth.ParsePattern(c.other))
		if p.Covers(other) != c.want {
			t.Errorf("%q covers %q: %t, want %t", c.pattern, c.other, !c.want, c.want)
		}
	}
	if (auth.Pattern{}).Covers(must(auth.ParsePattern("*"))) ||
		(auth.Pattern{}).Covers(auth.Pattern{}) {
		t.Error("no pattern covers one")
	}
}

// texts returns all texts of up to length letters.
func texts(letters string, length int) []string {
	all, last := []string{""}, []string{""}
	for range length {
		var next []string
		for _, text := range last {
			for _, letter := range letters {
				next = append(next, text+string(letter))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// TestCoversSelectsNoMore holds all short patterns against all short names: one that
// another covers selects nothing that the other does not, and one that it does not cover
// selects something, with a letter that is in neither.
func TestCoversSelectsNoMore(t *testing.T) {
	names := texts("abc", 6)[1:]
	var patterns []auth.Pattern
	for _, text := range texts("ab*", 4)[1:] {
		if strings.Count(text, "*") > 1 {
			continue
		}
		patterns = append(patterns, must(auth.ParsePattern(text)))
	}
	covered := 0
	for _, p := range patterns {
		allowed := map[string]bool{}
		for _, name := range names {
			allowed[name] = p.Match(name)
		}
		for _, other := range patterns {
			more := ""
			for _, name := range names {
				if !allowed[name] && other.Match(name) {
					more = name
					break
				}
			}
			if covers := p.Covers(other); covers != (more == "") {
				t.Fatalf("%q covers %q: %t, and that selects %q besides", p, other, covers, more)
			} else if covers {
				covered++
			}
		}
	}
	if covered < 500 {
		t.Errorf("%d of %d pairs cover", covered, len(patterns)*len(patterns))
	}
}

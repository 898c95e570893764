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
		{"a*b*c", "abc", true},
		{"a*b*c", "a-b-c", true},
		{"a*b*c", "acb", false},
		{"a*bc*c", "abc", false},
		{"*ab*ab*", "ab", false},
		{"*ab*ab*", "abab", true},
		{"*", "", true},
		{"**", "x", true},
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
	if _, err := auth.ParsePattern(strings.Repeat("a", 257)); err == nil {
		t.Error("a pattern of 257 bytes was accepted")
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
			if text != "" && len(text) <= 256 {
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

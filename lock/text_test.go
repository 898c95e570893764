package lock_test

import (
	"strings"
	"testing"

	"github.com/fencepost/fencepost/lock"
)

func TestCheckHolder(t *testing.T) {
	for s, good := range map[string]bool{
		"w": true, "worker <7> 工 ä 👩‍🔧": true, " ": true, "עובד": true, strings.Repeat("工", 200): true,
		"": false, strings.Repeat("工", 201): false, "a\x00b": false, "a\x1b[31mb": false, "a\nb": false,
		"a\rb": false, "a\tb": false,
		"a\x7f": false, "a\u0085b": false, "a\u009bb": false, "a\u2028b": false, "a\u2029b": false,
		"a\xffb":   false,
		"a\u202eb": false, "a\u2066b": false, "a\u2069b": false, "a\u200eb": false, "a\u200fb": false,
		"a\u061cb": false,
	} {
		if got := lock.CheckHolder(s); (got == "") != good {
			t.Errorf("CheckHolder(%q) = %q, want it good: %t", s, got, good)
		}
	}
}

func TestCheckMetadata(t *testing.T) {
	many := map[string]string{}
	for i := range lock.MaxMetadata + 1 {
		many[strings.Repeat("k", i)] = ""
	}
	for _, c := range []struct {
		pairs map[string]string
		good  bool
	}{
		{nil, true},
		{map[string]string{"": "", "trace": "at a\n\tat b\r\n"}, true},
		{map[string]string{"title": "\u200fעבודה"}, true},
		{map[string]string{"k": strings.Repeat("v", lock.MaxMetadataSize-1)}, true},
		{map[string]string{"k": strings.Repeat("v", lock.MaxMetadataSize)}, false},
		{map[string]string{"k": "\x00"}, false},
		{map[string]string{"k": "\x1b[2J"}, false},
		{map[string]string{"k": "\u0085"}, false},
		{map[string]string{"k": "\xff"}, false},
		{map[string]string{"a\nb": "v"}, false},
		{map[string]string{"a\x00": "v"}, false},
		{map[string]string{"a\u202e": "v"}, false},
		{map[string]string{"\xff": "v"}, false},
		{many, false},
	} {
		if got := lock.CheckMetadata(c.pairs); (got == "") != c.good {
			t.Errorf("CheckMetadata(%q) = %q, want it good: %t", c.pairs, got, c.good)
		}
	}
}

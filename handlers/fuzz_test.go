package handlers_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
)

// Whatever is sent, an answer is a success of the contract or a problem document
// of a status below 500: the client checks that for every answer. Each target
// says besides when which of the two is due, and that a second tenant's lock,
// which is held all the time, neither shows nor gives way.

// fuzzed has two tenants: own sends what is fuzzed, victim holds a lock.
type fuzzed struct{ own, victim *client }

const victimsHolder = "the-victims-holder"

func newFuzzed(f *testing.F) fuzzed {
	f.Helper()
	p := fuzzed{own: newTenant(f), victim: newTenant(f)}
	e := p.victim.acquire("orders:42", body(`{"ttl_seconds":3600,"holder":"`+victimsHolder+`"}`))
	f.Cleanup(func() { p.victim.checkQueue("orders:42", e, nil) })
	return p
}

// unharmed checks that an answer shows nothing of the victim.
func (p fuzzed) unharmed(a *answer) {
	a.t.Helper()
	if bytes.Contains(a.body, []byte(victimsHolder)) ||
		bytes.Contains(a.body, []byte(p.victim.claims.Tenant+`"`)) {
		a.t.Errorf("%v shows another tenant", a)
	}
}

// sendable returns the value as it arrives in a header, and whether HTTP can carry
// it at all.
func sendable(value string) (string, bool) {
	return strings.Trim(value, " \t"), strings.IndexFunc(
		value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f },
	) < 0
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,199}$`)

func FuzzName(f *testing.F) {
	for _, name := range []string{
		"a", "orders:42", "", ".", "..", "-a", "a/b", "a/renew", "a%2Fb", "a+b", "a b", "ä", "\x00",
		"a\n", "\xff", "a\\b", "a{", "a/{", "%", strings.Repeat("a", 200), strings.Repeat("a", 201),
		"a?b", "a#b", "/", "//", "../a", "a;b=c", "entries", "renew",
	} {
		f.Add(name)
	}
	p := newFuzzed(f)
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 4096 || strings.HasSuffix(name, "\n") { // "$" matches before it
			return
		}
		for _, wire := range []string{url.PathEscape(name), percentAll(name)} {
			c := p.own.in(t)
			a := c.post("/locks/" + wire)
			p.unharmed(a)
			switch {
			case goodName.MatchString(name):
				e := a.held(http.StatusCreated)
				if e.Name != name {
					t.Errorf("acquired %q, want %q", e.Name, name)
				}
				c.delete("/locks/"+wire, lockToken(e.Token)).wantNoContent()
			case name == "":
				a.wantProblem(nothingHere())
			default:
				a.wantProblem(invalidName())
			}
		}
	})
}

// FuzzTarget sends the request target as it is, byte by byte.
func FuzzTarget(f *testing.F) {
	for i, target := range []string{
		"/locks", "/locks/a", "/locks/orders:42", "/locks/a%2Fb", "/locks/a%2Fentries/x{",
		"/locks/a/entries/x", "/locks/a/renew", "*", "/", "//", "http://x/locks/orders:42", "//x/locks",
		"/locks/../locks", "/locks/%", "/locks/%zz", "/locks/a;b", "/locks?limit=1&cursor=x",
		"/locks?%zz=%", "/docs/../locks", "/docs/%2e%2e/x", "/metrics", "x:1", "/locks/a?wait_seconds=1",
		"/healthz#x", "/\xff", "/locks/{",
	} {
		f.Add(uint8(i), target)
	}
	p := newFuzzed(f)
	methods := []string{"GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "POST"}
	f.Fuzz(func(t *testing.T, method uint8, target string) {
		if strings.IndexFunc(target, func(r rune) bool { return r <= ' ' || r == 0x7f }) >= 0 ||
			target == "" {
			return // another number of words in the line
		}
		m := methods[int(method)%len(methods)]
		conn := dial(t, shared.main)
		conn.write(
			m + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " +
				p.own.bearer + "\r\n\r\n",
		)
		a, _ := conn.read(m)
		p.unharmed(a)
		if a.header.Get("X-Request-Id") == "" { // refused by net/http, before any handler
			if a.status != http.StatusBadRequest {
				t.Errorf("%v, want 400", a)
			}
			return
		}
		a.check()
	})
}

func FuzzLockToken(f *testing.F) {
	for _, text := range []string{
		"", "x", "fp1_", "fp1_AAAA", "fp1_" + strings.Repeat("A", 64), "Bearer x", "\xff", "\t",
		"fp1_%00", "é",
	} {
		f.Add(text, uint8(0), uint8(0), uint8(0))
	}
	for _, change := range [][3]uint8{
		{0, 0, 0}, {4, 1, 0}, {67, 1, 0}, {40, 0x20, 0}, {0, 0, 1}, {0, 0, 30}, {3, 3, 2},
	} {
		f.Add("", change[0], change[1], change[2])
	}
	p := newFuzzed(f)
	e := p.own.acquire("orders:42", body(`{"ttl_seconds":3600}`))
	f.Fuzz(func(t *testing.T, text string, at, flip, cut uint8) {
		token := text
		if text == "" {
			changed := []byte(e.Token)
			changed[int(at)%len(changed)] ^= flip
			token = string(changed[:len(changed)-int(cut)%len(changed)])
		}
		token, ok := sendable(token)
		if !ok {
			return
		}
		c := p.own.in(t)
		for _, a := range []*answer{
			c.get(entryPath(e), header("Lock-Token", token)),
			c.put("/locks/orders:42/renew", header("Lock-Token", token)),
		} {
			p.unharmed(a)
			switch token {
			case e.Token:
				a.held(http.StatusOK)
			case "":
				a.wantProblem(invalid("Lock-Token", "must be sent, once, as a header"))
			default:
				a.wantProblem(tokenMismatch())
			}
		}
	})
}

func FuzzList(f *testing.F) {
	p := newFuzzed(f)
	for _, name := range []string{"own:1", "own:2", "own:3"} {
		p.own.acquire(name, body(`{"ttl_seconds":3600}`))
	}
	for _, cursor := range []string{
		"", "x", afterOf("own:1"), afterOf("orders:41"), afterOf(""), afterOf("a/b"), segment("x"),
		"\x00", "\xff", "%", "AA==",
	} {
		f.Add(cursor, "", "", "")
		f.Add(afterOf("own:1"), cursor, "held", "1")
		f.Add(afterOf("own:1"), "own", cursor, cursor)
	}
	f.Add(afterOf("own:1"), "own:", "contended", "1000")
	f.Fuzz(func(t *testing.T, cursor, prefix, state, limit string) {
		query := url.Values{}
		for name, value := range map[string]string{
			"cursor": cursor, "prefix": prefix, "state": state, "limit": limit,
		} {
			if value != "" {
				query.Set(name, value)
			}
		}
		a := p.own.in(t).get("/locks?" + query.Encode())
		p.unharmed(a)
		if a.status == http.StatusBadRequest {
			return
		}
		var got page
		a.want(http.StatusOK, &got)
		raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
		after, ok := strings.CutPrefix(string(raw), "locks|")
		if cursor != "" && (err != nil || !ok || !goodName.MatchString(after)) {
			t.Errorf("%v: the cursor %q is none", a, cursor)
		}
		for _, name := range got.names() {
			if !strings.HasPrefix(name, "own:") || !strings.HasPrefix(name, prefix) || name <= after {
				t.Errorf("%v: %q does not belong there", a, name)
			}
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, text := range []string{
		"", "{}", " ", someBody, `{"ttl_seconds":2}`, `{"ttl_seconds":1e308}`, `{"wait_seconds":-0.0}`,
		`{"mode":"shared"}`, `{"mode":"semaphore","limit":2}`, `{"mode":"semaphore","limit":1e0}`,
		`{"limit":2}`, `{"limit":null}`, `{"mode":"semaphore"}`, `{"holder":"\u0000"}`,
		`{"metadata":{"a":"b"}}`, `{"metadata":{"":""}}`, `{"metadata":{"a":null}}`, `{"metadata":null}`,
		`null`, `[]`, `{}{}`, `{"x":1}`, `{"ttl_seconds":5,"ttl_seconds":6}`, `{"Holder":"w"}`, "\xff",
		`{"holder":"\ud800"}`, `{"ttl_seconds":1.9995}`, `{"wait_seconds":86400.0004}`,
		`{"metadata":{"a":{}}}`, strings.Repeat("[", 100), "{\"a\":", padded(16 << 10),
		padded(16<<10 + 1), `{"holder":"` + strings.Repeat("工", 200) + `"}`,
	} {
		f.Add([]byte(text), "application/json", false)
		f.Add([]byte(text), "application/json", true)
	}
	for _, ct := range []string{
		"", "text/plain", "application/json; charset=utf-8", "application/json;", "APPLICATION/JSON",
		"application/json; x", "\t", ";;", "ä",
	} {
		f.Add([]byte(`{}`), ct, false)
		f.Add([]byte(``), ct, true)
	}
	p := newFuzzed(f)
	var n atomic.Int64
	f.Fuzz(func(t *testing.T, text []byte, contentType string, inChunks bool) {
		contentType, ok := sendable(contentType)
		if !ok {
			return
		}
		send := body
		if inChunks {
			send = chunked
		}
		c, name := p.own.in(t), fmt.Sprintf("b:%d", n.Add(1))
		a := c.post("/locks/"+name, send(string(text)), header("Content-Type", contentType), loose)
		p.unharmed(a)
		if want := due(text, contentType); a.status != want {
			t.Fatalf("%q as %q: %v, want %d", text, contentType, a, want)
		}
		if a.status == http.StatusCreated {
			c.release(a.held(http.StatusCreated))
		}
	})
}

// due is the status that an acquire of a free lock has to be answered with,
// found in another way than the server's.
func due(text []byte, contentType string) int {
	media, parameters, err := mime.ParseMediaType(contentType)
	charset, named := parameters["charset"]
	content := bytes.Trim(text, " \t\r\n")
	switch {
	case len(text) > 16<<10:
		return http.StatusRequestEntityTooLarge
	case len(content) == 0:
		return http.StatusCreated
	case contentType != "" && (err != nil || media != "application/json" || named && !isUTF8(charset)):
		return http.StatusUnsupportedMediaType
	case !acceptable(bytes.TrimPrefix(content, []byte("\ufeff"))):
		return http.StatusBadRequest
	}
	return http.StatusCreated
}

func isUTF8(charset string) bool {
	return strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8") ||
		strings.EqualFold(charset, "us-ascii")
}

func acceptable(text []byte) bool {
	var members map[string]any
	if !utf8.Valid(text) || unmarshalNumbers(text, &members) != nil || members == nil ||
		repeats(text) || lonely(text) {
		return false
	}
	for name, value := range members {
		if value != nil && !acceptableMember(name, value) ||
			!strings.Contains("ttl_seconds wait_seconds mode limit holder metadata", name) {
			return false
		}
	}
	return (members["mode"] == "semaphore") == (members["limit"] != nil)
}

func acceptableMember(name string, value any) bool {
	switch name {
	case "ttl_seconds":
		return between(inNanoseconds(value), 2e9, 3600e9)
	case "wait_seconds":
		return between(inNanoseconds(value), 0, 86400e9)
	case "mode":
		return value == "exclusive" || value == "shared" || value == "semaphore"
	case "limit":
		n := exactly(value)
		return between(n, 1, 1_000_000) && n.IsInt()
	case "holder":
		s, ok := value.(string)
		return ok && s != "" && utf8.RuneCountInString(s) <= 200 && !oddName.MatchString(s)
	case "metadata":
		pairs, ok := value.(map[string]any)
		size := 0
		for k, v := range pairs {
			s, isText := v.(string)
			ok = ok && isText && !oddName.MatchString(k) && !oddText.MatchString(s)
			size += len(k) + len(s)
		}
		return ok && len(pairs) <= 16 && size <= 2048
	}
	return false
}

var (
	oddName = regexp.MustCompile(
		`[\p{Cc}\p{Zl}\p{Zp}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`,
	)
	oddText = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x{9f}]`)
)

// between compares a number exactly. nil is none.
func between(n *big.Rat, least, most int64) bool {
	return n != nil && n.Cmp(big.NewRat(least, 1)) >= 0 && n.Cmp(big.NewRat(most, 1)) <= 0
}

// inNanoseconds rounds seconds away from zero, so that no bound is passed by it.
func inNanoseconds(value any) *big.Rat {
	n := exactly(value)
	if n == nil {
		return nil
	}
	n.Mul(n, big.NewRat(1e9, 1))
	whole, rest := new(big.Int).QuoRem(n.Num(), n.Denom(), new(big.Int))
	return n.SetInt(whole.Add(whole, big.NewInt(int64(rest.Sign()))))
}

// exactly is the number, or one that is as good for any bound if it has an exponent
// with which big would take all memory. It is nil for anything else.
func exactly(value any) *big.Rat {
	number, ok := value.(json.Number)
	if !ok {
		return nil
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number.String()), "e")
	if n, err := strconv.Atoi(exponent); exponent != "" && (err != nil || n > 20_000 || n < -20_000) {
		exponent = "20000"
		if strings.HasPrefix(number.String()[len(mantissa)+1:], "-") {
			exponent = "-20000"
		}
		number = json.Number(mantissa + "e" + exponent)
	}
	n, ok := new(big.Rat).SetString(number.String())
	if !ok {
		panic("not a number: " + number)
	}
	return n
}

var (
	aPair = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)
	aHalf = regexp.MustCompile(`(?i)\\ud[89a-f]`)
)

// lonely reports whether there is an escape of half a surrogate pair.
func lonely(text []byte) bool {
	plain := bytes.ReplaceAll(text, []byte(`\\`), []byte(" "))
	return aHalf.Match(aPair.ReplaceAll(plain, nil))
}

// repeats reports whether an object has two members of one name.
func repeats(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return true
	}
	seen := map[json.Token]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil || seen[name] || d.Decode(new(any)) != nil {
			return true
		}
		seen[name] = true
	}
	return false
}

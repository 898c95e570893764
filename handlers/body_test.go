package handlers_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
)

func tooLarge() problem {
	return problem{code: "body_too_large", detail: "the body is too long; send 16384 bytes at most"}
}

func notJSONType() problem {
	return problem{code: "unsupported_media_type", detail: "send the body as application/json"}
}

// TestBadBodiesAreRefused: of an acquire. Nothing of them is taken up.
func TestBadBodiesAreRefused(t *testing.T) {
	t.Parallel()
	ttl := invalid("ttl_seconds", "must be between 2 and 3600")
	wait := invalid("wait_seconds", "must be between 0 and 86400")
	mode := invalid("mode", "must be exclusive, shared or semaphore")
	limit := invalid("limit", "must be a whole number from 1 to 1000000 for a semaphore")
	oddHolder := invalid(
		"holder",
		"must not have control characters, line breaks or marks that turn the direction of writing",
	)
	number := func(field string) problem { return invalid(field, "must be a number") }
	cases := map[string]struct {
		text string
		want problem
	}{
		"Null":          {`null`, malformed(notObject)},
		"Array":         {`[]`, malformed(notObject)},
		"Text":          {`"x"`, malformed(notObject)},
		"Garbage":       {`garbage`, malformed(notObject)},
		"OtherSpaces":   {"\u00a0{}", malformed(notObject)},
		"FormFeed":      {"{}\f", malformed(notJSON)},
		"TwoOrderMarks": {"\ufeff\ufeff{}", malformed(notObject)},
		"UTF16":         {"{\x00}\x00", malformed(notJSON)},
		"Unfinished":    {`{`, malformed(notJSON)},
		"SingleQuotes":  {`{'ttl_seconds':5}`, malformed(notJSON)},
		"NoQuotes":      {`{ttl_seconds:5}`, malformed(notJSON)},
		"Comment":       {`{/* x */}`, malformed(notJSON)},
		"TrailingComma": {`{"ttl_seconds":5,}`, malformed(notJSON)},
		"NaN":           {`{"ttl_seconds":NaN}`, malformed(notJSON)},
		"LeadingZero":   {`{"ttl_seconds":05}`, malformed(notJSON)},
		"Hex":           {`{"ttl_seconds":0x10}`, malformed(notJSON)},
		"InvalidUTF8":   {"{\"holder\":\"a\xffb\"}", malformed(notJSON)},
		"Overlong":      {"{\"holder\":\"a\xc0\xafb\"}", malformed(notJSON)},
		"InvalidKey":    {"{\"\xff\":1}", malformed(notJSON)},
		"Control":       {"{\"holder\":\"a\nb\"}", malformed(notJSON)},
		"Form":          {`ttl_seconds=5`, malformed(notObject)},
		"Trailing":      {`{} x`, malformed(notJSON)},
		"TwoObjects":    {`{}{}`, malformed(notJSON)},
		"TrailingNull":  {`{}null`, malformed(notJSON)},
		"TrailingZero":  {"{}\x00", malformed(notJSON)},
		"Deep": {
			`{"metadata":` + strings.Repeat(`{"a":`, 2000) + `1` + strings.Repeat(`}`, 2001),
			invalid("metadata.a", "must be a string"),
		},
		"DeepArray": {
			`{"metadata":{"a":` + strings.Repeat(`[`, 8000) + strings.Repeat(`]`, 8000) + `}}`,
			invalid("metadata.a", "must be a string"),
		},
		"DeepOpen": {strings.Repeat(`{"a":`, 3000), unknown("a")},

		"EmptyField":    {`{"":5}`, unknown("")},
		"FieldOfAnswer": {`{"fence":5}`, unknown("fence")},
		"CallbackURL": {
			`{"callback_url":"https://example.com"}`,
			invalid("callback_url", "is for async requests; set async, or leave it out"),
		},
		"Tenant":    {`{"tenant":"other"}`, unknown("tenant")},
		"OtherCase": {`{"TTL_SECONDS":5}`, meant(unknown("TTL_SECONDS"), "ttl_seconds")},
		"OtherS":    {`{"ttl_ſeconds":5}`, meant(unknown("ttl_ſeconds"), "ttl_seconds")},
		"Twice": {
			`{"ttl_seconds":5,"ttl_seconds":50}`, invalid("ttl_seconds", "must not be there twice"),
		},
		"TwiceEscaped": {
			`{"mode":"exclusive","m\u006fde":"exclusive"}`, invalid("mode", "must not be there twice"),
		},
		"KnownFirst": {`{"ttl_seconds":5,"x":1}`, unknown("x")},
		"MetaTwice": {
			`{"metadata":{"a":"1","b":"{\"b\":","a":"2"}}`, invalid("metadata.a", "must not be there twice"),
		},

		"TTLText":      {`{"ttl_seconds":"5"}`, number("ttl_seconds")},
		"TTLArray":     {`{"ttl_seconds":[5]}`, number("ttl_seconds")},
		"WaitText":     {`{"wait_seconds":"5"}`, number("wait_seconds")},
		"ModeNumber":   {`{"mode":1}`, invalid("mode", "must be a string")},
		"HolderNumber": {`{"holder":1}`, invalid("holder", "must be a string")},
		"MetaArray":    {`{"metadata":[]}`, invalid("metadata", "must be an object")},
		"MetaNumber":   {`{"metadata":{"a":1}}`, invalid("metadata.a", "must be a string")},
		"MetaNull":     {`{"metadata":{"a":null}}`, invalid("metadata", "must be an object of strings")},
		"MetaObject":   {`{"metadata":{"a":{}}}`, invalid("metadata.a", "must be a string")},

		"TTLZero":        {`{"ttl_seconds":0}`, ttl},
		"TTLMinusZero":   {`{"ttl_seconds":-0.0}`, ttl},
		"TTLTiny":        {`{"ttl_seconds":0.0001}`, ttl},
		"TTLDenormal":    {`{"ttl_seconds":5e-324}`, ttl},
		"TTLBelow":       {`{"ttl_seconds":1.999}`, ttl},
		"TTLAbove":       {`{"ttl_seconds":3600.001}`, ttl},
		"TTLHuge":        {`{"ttl_seconds":1e308}`, ttl},
		"TTLOverflow":    {`{"ttl_seconds":1e309}`, ttl},
		"TTLNanoseconds": {`{"ttl_seconds":9223372036854775807}`, ttl},
		"TTLManyDigits":  {`{"ttl_seconds":` + strings.Repeat("9", 5000) + `}`, ttl},
		"WaitNegative":   {`{"wait_seconds":-1}`, wait},
		"WaitAbove":      {`{"wait_seconds":86400.001}`, wait},
		"WaitHuge":       {`{"wait_seconds":1e308}`, wait},
		"WaitOverflow":   {`{"wait_seconds":-1e309}`, wait},
		"TTLJustAbove":   {`{"ttl_seconds":3600.0000000000000001}`, ttl},
		"TTLRounds":      {`{"ttl_seconds":1.9995}`, ttl},
		"TTLExponents":   {`{"ttl_seconds":1e99999999999999999999}`, ttl},
		"TTLNoExponent":  {`{"ttl_seconds":1e-99999999999999999999}`, ttl},
		"WaitJustBelow":  {`{"wait_seconds":-1e-30}`, wait},
		"WaitJustAbove":  {`{"wait_seconds":86400.000000000000001}`, wait},
		"ModeUnknown":    {`{"mode":"both"}`, mode},
		"ModeEmpty":      {`{"mode":""}`, mode},
		"ModeInCaps":     {`{"mode":"EXCLUSIVE"}`, mode},
		"LimitZero":      {`{"mode":"semaphore","limit":0}`, limit},
		"LimitNegative":  {`{"mode":"semaphore","limit":-1}`, limit},
		"LimitAbove":     {`{"mode":"semaphore","limit":1000001}`, limit},
		"LimitMissing":   {`{"mode":"semaphore"}`, limit},
		"LimitFraction": {
			`{"mode":"semaphore","limit":1.5}`, invalid("limit", "must be a whole number"),
		},
		"PermitsZero": {
			`{"mode":"semaphore","limit":2,"permits":0}`,
			invalid("permits", "must be a whole number from 1 to limit, which is 2"),
		},
		"PermitsAbove": {
			`{"mode":"semaphore","limit":2,"permits":3}`,
			invalid("permits", "must be a whole number from 1 to limit, which is 2"),
		},
		"PermitsExclusive": {
			`{"permits":1}`,
			invalid("permits", "is for the mode semaphore only; set that mode, or leave it out"),
		},
		"LimitExclusive": {`{"limit":3}`, invalid("limit", "is for the mode semaphore only; set that mode, or leave it out")},
		"LimitShared": {
			`{"mode":"shared","limit":3}`,
			invalid("limit", "is for the mode semaphore only; set that mode, or leave it out"),
		},
		"LimitExponents": {`{"mode":"semaphore","limit":1e999}`, limit},
		"LimitAlmost": {
			`{"mode":"semaphore","limit":1.0000000000000000000001}`,
			invalid("limit", "must be a whole number"),
		},
		"HolderNUL":     {`{"holder":"a\u0000b"}`, oddHolder},
		"HolderEscape":  {`{"holder":"\u001b[2J"}`, oddHolder},
		"HolderLines":   {`{"holder":"a\nb"}`, oddHolder},
		"HolderC1":      {`{"holder":"a\u009bb"}`, oddHolder},
		"HolderBidi":    {`{"holder":"a\u202eb"}`, oddHolder},
		"HolderIsolate": {"{\"holder\":\"a\u2066b\"}", oddHolder},
		"MetaKeyLines": {
			`{"metadata":{"a\nb":"v"}}`,
			invalid(
				"metadata",
				"must not have keys with control characters, line breaks or marks that turn the direction "+
					"of writing",
			),
		},
		"MetaNUL": {
			`{"metadata":{"a":"v\u0000"}}`,
			invalid(
				"metadata", "must not have values with control characters other than tabs and line breaks",
			),
		},
		"MetaEscape": {
			`{"metadata":{"a":"\u001b[2J"}}`,
			invalid(
				"metadata", "must not have values with control characters other than tabs and line breaks",
			),
		},
		"HalfHigh":     {`{"holder":"a\ud800b"}`, malformed(notJSON)},
		"HalfLow":      {`{"holder":"\udc00"}`, malformed(notJSON)},
		"HalfNoEscape": {`{"holder":"\ud83d\\ude00"}`, malformed(notJSON)},
		"HalfValue":    {`{"metadata":{"a":"\ud800"}}`, malformed(notJSON)},
		"HalfKey":      {`{"metadata":{"\ud800":"a"}}`, malformed(notJSON)},
		"HolderEmpty":  {`{"holder":""}`, invalid("holder", "must not be empty")},
		"HolderLong": {
			`{"holder":"` + strings.Repeat("h", 201) + `"}`,
			invalid("holder", "must not be longer than 200 characters"),
		},
		"HolderLongWide": {
			`{"holder":"` + strings.Repeat("工", 201) + `"}`,
			invalid("holder", "must not be longer than 200 characters"),
		},
		"MetaMany": {
			`{"metadata":` + pairs(17, 1) + `}`, invalid("metadata", "must not have more than 16 pairs"),
		},
		"MetaLarge": {
			`{"metadata":{"k":"` + strings.Repeat("v", 2048) + `"}}`,
			invalid("metadata", "must not be longer than 2048 bytes in all"),
		},
		"MetaLargeKeys": {
			`{"metadata":{"` + strings.Repeat("k", 2049) + `":""}}`,
			invalid("metadata", "must not be longer than 2048 bytes in all"),
		},
		"MetaLargeInAll": {
			`{"metadata":` + pairs(16, 126) + `}`,
			invalid("metadata", "must not be longer than 2048 bytes in all"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			for _, send := range []func(string) option{body, chunked} {
				c.post("/locks/orders:42", send(tc.text)).wantProblem(tc.want)
				c.post("/locks/orders:42", send(tc.text), key("k")).wantProblem(tc.want)
			}
			c.acquire("orders:42", key("k")) // neither the lock nor the key was taken
		})
	}
}

// pairs is an object of n pairs with keys of 3 and values of size bytes.
func pairs(n, size int) string {
	texts := make([]string, n)
	for i := range n {
		texts[i] = fmt.Sprintf(`"k%02d":%q`, i, strings.Repeat("v", size))
	}
	return "{" + strings.Join(texts, ",") + "}"
}

func TestBodiesOver16KiBAreRefused(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"ByOne": 16<<10 + 1, "Much": 1 << 20, "VeryMuch": 8 << 20} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTenant(t)
			for _, text := range []string{
				padded(size), `{"holder":"` + strings.Repeat("h", size) + `"}`, strings.Repeat("x", size),
			} {
				c.post("/locks/orders:42", body(text)).wantProblem(tooLarge())
				c.post("/locks/orders:42", chunked(text)).wantProblem(tooLarge())
			}
			c.acquire("orders:42")
		})
	}
}

// TestNumbersAreExact: as they are written, to the digit. A duration is rounded up to the
// millisecond, after its bounds were looked at.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		`{"ttl_seconds":2.0}`: 2, `{"ttl_seconds":20e-1}`: 2, `{"ttl_seconds":0.0000000003E10}`: 3,
		`{"ttl_seconds":2.0001}`:    2.001,
		`{"ttl_seconds":3599.9991}`: 3600, `{"ttl_seconds":3600.000}`: 3600,
		`{"ttl_seconds":2.345}`: 2.345, `{"ttl_seconds":2.3450000000000000001}`: 2.346,
		`{"ttl_seconds":` + "2." + strings.Repeat("0", 5000) + `}`: 2, `{"wait_seconds":0.0001}`: 30,
		`{"wait_seconds":5e-324}`: 30,
		`{"wait_seconds":-0.0}`:   30, `{"wait_seconds":86400.0}`: 30,
		`{"wait_seconds":1e-999999999999}`: 30,
	} {
		if e := newTenant(t).acquire("orders:42", body(text)); *e.TTLSeconds != want {
			t.Errorf("%.80s: ttl_seconds = %v, want %v", text, *e.TTLSeconds, want)
		}
	}
	for _, limit := range []string{"3", "3.0", "3e0", "0.3e1", "30e-1", "3.000000000000000000000"} {
		e := newTenant(t).acquire("orders:42", body(`{"mode":"semaphore","limit":`+limit+`}`), loose)
		if e.Limit != 3 {
			t.Errorf("limit %s is %d", limit, e.Limit)
		}
	}
}

// TestTextComesBackUnchanged: what people write is taken and given back as it is.
func TestTextComesBackUnchanged(t *testing.T) {
	t.Parallel()
	e := newTenant(t).acquire("orders:42", body(
		`{"holder":"\ud83d\ude00 \u05e2 <&>","metadata":{"trace":"a\n\tb\r\n",`+
			`"\ud83d\uDE00":"\\ud800 \u200f\u2028"}}`,
	))
	want := map[string]string{"trace": "a\n\tb\r\n", "😀": "\\ud800 \u200f\u2028"}
	if e.Holder != "😀 ע <&>" || !maps.Equal(e.Metadata, want) {
		t.Errorf("%q %q", e.Holder, e.Metadata)
	}
}

func TestEncodedBodiesAreRefused(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	encoded := problem{
		code: "unsupported_media_type", detail: "send the body without a Content-Encoding",
	}
	for _, send := range []func(string) option{body, chunked} {
		for _, coding := range [][]string{
			{"gzip"}, {"br"}, {"identity", "gzip"}, {"identity, gzip"}, {""},
		} {
			a := c.post("/locks/orders:42", send(`{}`), header("Content-Encoding", coding...))
			a.wantProblem(encoded)
			if got := a.header.Get("Accept-Encoding"); got != "identity" {
				t.Errorf("Accept-Encoding = %q", got)
			}
		}
	}
	c.acquire("orders:42", body(`{}`), header("Content-Encoding", "identity"))
}

func TestOnlyUTF8IsAccepted(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	foreign := problem{code: "unsupported_media_type", detail: "send the body in UTF-8"}
	for _, charset := range []string{"latin1", "utf-16", "iso-8859-1", `""`, "utf-7"} {
		c.post(
			"/locks/orders:42", body(`{}`), header("Content-Type", "application/json; charset="+charset),
		).wantProblem(foreign)
	}
	c.post("/locks/orders:42", body(`{}`), header("Content-Type", "application/json", "text/plain")).
		wantProblem(notJSONType())
	for i, charset := range []string{"utf-8", "UTF-8", `"Utf-8"`, "utf8", "UTF8", "us-ascii"} {
		c.acquire(
			fmt.Sprint("orders:", i), body(`{}`),
			header("Content-Type", "application/json;charset="+charset),
		)
	}
}

// TestBodyWithAByteOrderMark: the mark is skipped.
func TestBodyWithAByteOrderMark(t *testing.T) {
	t.Parallel()
	a := newTenant(t).post("/locks/orders:42", body("\ufeff {\"ttl_seconds\":5}"), loose)
	if e := a.held(http.StatusCreated); *e.TTLSeconds != 5 {
		t.Errorf("the lease takes %v s", *e.TTLSeconds)
	}
}

// TestUnfinishedBody: a body that does not arrive whole takes nothing.
func TestUnfinishedBody(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for _, text := range []string{
		"Content-Length: 100\r\n\r\n{}", "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
		"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
	} {
		conn := dial(t, shared.main)
		conn.write(
			"POST /locks/orders:42 HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
				"Authorization: Bearer " + c.bearer + "\r\n" + text,
		)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		a, _ := conn.read(http.MethodPost)
		a.check()
		a.wantProblem(malformed("the body did not arrive whole; send it again"))
	}
	c.acquire("orders:42")
}

// TestBodiesOfLooks: a body that means nothing is read before an answer that has no end, and is
// refused if it is too long.
func TestBodiesOfLooks(t *testing.T) {
	t.Parallel()
	c := newTenant(t)
	for path, by := range map[string]*client{
		"/events": c, "/admin/events": c.admin(), "/metrics": c, "/admin/audit": c.admin(),
	} {
		a := by.get(path, header("Accept", "application/x-ndjson"), body(strings.Repeat(" ", 17<<10)))
		if a.status != http.StatusRequestEntityTooLarge || a.fields()["code"] != "body_too_large" {
			t.Errorf("%s: %v", path, a)
		}
	}
}

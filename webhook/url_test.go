package webhook_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fencepost/fencepost/lock"
	"github.com/fencepost/fencepost/webhook"
)

func TestCheckURL(t *testing.T) {
	p := policy(t, webhook.Settings{})
	long := "https://a.example/" + strings.Repeat("x", webhook.MaxURL-len("https://a.example/"))
	for _, raw := range []string{
		"https://a.example", "https://a.example/", "https://a.example:443/hook?tenant=a&b=%2F",
		"https://A.Example/", "HTTPS://a.example/", "https://xn--bcher-kva.example/",
		"https://a_b.example/", "https://1.a2.example/", "https://intranet/", "https://8.8.8.8/",
		"https://[2606:4700::1111]/", "https://[2606:4700::1111]:443/", "https://[::ffff:8.8.8.8]/",
		"https://a.example/@b", "https://a.example?x", "https://0x7f.example/",
		"https://a.example//b/../c", long,
	} {
		if err := p.CheckURL("url", raw); err != nil {
			t.Errorf("%.60s is refused: %v", raw, err)
		}
	}
	for raw, want := range map[string]string{
		"": "is missing", long + "x": "longer than 2048 bytes", "/hook": "not absolute",
		"a.example/hook": "not absolute",
		"//a.example/":   "not absolute", "a.example:443/": "neither https nor http",
		"ftp://a.example/": "neither", "file:///etc/passwd": "neither",
		"javascript:alert(1)": "neither", "http://a.example/": "https only", "https:a.example": "no host",
		"https:///hook": "no host",
		"https://":      "no host", "https://:443/": "no host", "https://u@a.example/": "user name",
		"https://u:p@a.example/": "user name",
		"https://@a.example/":    "user name", "https://a.example@127.0.0.1/": "user name",
		"https://a.example/#x": "fragment",
		"https://a.example/#":  "fragment", "https://a.example#@b.example/": "fragment",
		"https://a.example:/":  "colon without a port",
		"https://a.example:0/": "not a number", "https://a.example:0443/": "not a number",
		"https://a.example:65536/":                "not a number",
		"https://a.example:99999999999999999999/": "not a number", "https://a.example:80/": "port 80",
		"https://a.example:8443/": "port 8443",
		"https://a.example:-443/": "not a URL", "https://a.example:443:443/": "not a URL",
		"https://a.example./": "dot at the end",
		"https://127.0.0.1./": "dot at the end", "https://a..example/": "no host name",
		"https://.example/":   "no host name",
		"https://-a.example/": "no host name", "https://a-.example/": "no host name",
		"https://a,b.example/":                             "no host name",
		"https://a.example;b/":                             "no host name",
		"https://" + strings.Repeat("a", 64) + ".example/": "no host name",
		"https://" + strings.Repeat("a.", 126) + "ab/":     "longer than 253",
		"https://ü.example/":                               "not ASCII",
		"https://１２７.0.0.1/":                               "not ASCII",
		"https://127。0。0。1/":                               "not ASCII",
		"https://a.example/ü":                              "not ASCII",
		"https://%c3%bc.example/":                          "no host name",
		"https://%31%32%37.0.0.1/":                         "not a URL",
		"https://a.example%2f/":                            "not a URL",
		"https://a.example\\@b.example/":                   "backslash", "https://a.example/a b": "space",
		" https://a.example/":        "space",
		"https://a.example/\r\nX: y": "control", "https://a.example/\x00": "control",
		"https://a.example/\x7f": "control", "https://a.example/%zz": "not a URL",
		"https://127.0.0.1/": "127.0.0.1, a loopback address", "https://10.1.2.3/": "a private address",
		"https://0.0.0.0/":                          "this network",
		"https://169.254.169.254/latest/meta-data/": "a metadata service",
		"https://[fd00:ec2::254]/":                  "a metadata service",
		"https://localhost/":                        "a loopback address",
		"https://LOCALHOST/":                        "a loopback address",
		"https://a.localhost/":                      "a loopback address",
		"https://0x7f.1/":                           "usual form", "https://2130706433/": "usual form",
		"https://0177.0.0.1/": "usual form", "https://127.1/": "usual form",
		"https://0x7f000001/": "usual form", "https://127.0.0.0x1/": "usual form",
		"https://0x/": "usual form", "https://127.0.0.1.1/": "usual form",
		"https://256.0.0.1/": "usual form", "https://a.example.1/": "usual form",
		"https://4294967296/": "usual form", "https://0X7F.1/": "usual form",
		"https://[::1]/": "a loopback address", "https://[::]/": "unspecified",
		"https://[::ffff:127.0.0.1]/": "127.0.0.1, a loopback",
		"https://[::ffff:7f00:1]/":    "a loopback", "https://[::127.0.0.1]/": "IPv4-compatible",
		"https://[64:ff9b::7f00:1]/": "a loopback",
		"https://[fe80::1%25eth0]/":  "zone", "https://[127.0.0.1]/": "brackets",
		"https://[a.example]/": "brackets", "https://[::1/": "not a URL",
		"https://::1/": "brackets", "https://[v1.x]/": "brackets",
	} {
		err := p.CheckURL("callback_url", raw)
		fault, ok := errors.AsType[*lock.Error](err)
		if !ok || fault.Code != lock.InvalidRequest || fault.Field != "callback_url" {
			t.Errorf("%.60q: %v", raw, err)
			continue
		}
		// Which of two things that are wrong net/url names is its own matter.
		if !strings.Contains(fault.Detail, want) &&
			!(want == "brackets" && strings.Contains(fault.Detail, "not a URL")) {
			t.Errorf("%.60q: %q, want %q", raw, fault.Detail, want)
		}
	}
}

func TestCheckURLAsTheOperatorSays(t *testing.T) {
	for name, test := range map[string]struct {
		settings  webhook.Settings
		good, bad []string
	}{
		"http": {
			webhook.Settings{AllowHTTP: true},
			[]string{
				"http://a.example/", "http://a.example:443/", "https://a.example:80/", "https://a.example/",
			},
			[]string{"http://a.example:8080/", "http://127.0.0.1/"},
		},
		"ports": {
			webhook.Settings{Ports: " 8443 , 9443", AllowHTTP: true},
			[]string{"https://a.example:8443/", "http://a.example:9443/"},
			[]string{"https://a.example/", "http://a.example/", "https://a.example:443/"},
		},
		"any port": {
			webhook.Settings{Ports: " * "},
			[]string{"https://a.example:1/", "https://a.example:65535/"},
			[]string{"https://a.example:0/", "http://a.example/"},
		},
		"ranges": {
			webhook.Settings{Allow: "127.0.0.0/8,10.0.0.0/8"},
			[]string{
				"https://127.0.0.1/", "https://localhost/", "https://10.0.0.1/", "https://[::ffff:10.0.0.1]/",
			},
			[]string{
				"https://[::1]/", "https://192.168.0.1/", "https://169.254.169.254/", "https://0.0.0.0/",
				"https://127.1/",
			},
		},
	} {
		p := policy(t, test.settings)
		for _, raw := range test.good {
			if err := p.CheckURL("url", raw); err != nil {
				t.Errorf("%s: %s is refused: %v", name, raw, err)
			}
		}
		for _, raw := range test.bad {
			if p.CheckURL("url", raw) == nil {
				t.Errorf("%s: %s is accepted", name, raw)
			}
		}
	}
}

// TestControl: the address that is about to be connected to is judged with its port.
func TestControl(t *testing.T) {
	p := policy(t, webhook.Settings{Allow: "10.0.0.0/8"})
	for _, test := range []struct {
		network, address string
		ok               bool
	}{
		{"tcp4", "8.8.8.8:443", true},
		{"tcp6", "[2606:4700::1]:443", true},
		{"tcp4", "10.0.0.1:443", true},
		{"tcp4", "8.8.8.8:80", false},
		{"tcp4", "127.0.0.1:443", false},
		{"tcp6", "[::ffff:127.0.0.1]:443", false},
		{"tcp6", "[fe80::1%eth0]:443", false},
		{"tcp4", "169.254.169.254:443", false},
		{"udp4", "8.8.8.8:443", false},
		{"unix", "/run/docker.sock", false},
		{"tcp4", "a.example:443", false},
	} {
		if err := p.Control(t.Context(), test.network, test.address, nil); (err == nil) != test.ok {
			t.Errorf("%s %s: %v", test.network, test.address, err)
		}
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestSettingsFile: values are taken as they are written, in both notations.
func TestSettingsFile(t *testing.T) {
	for _, text := range []string{
		"# ours\nlisten: 127.0.0.1:9999 # here\njwt-issuer: no\njwt-audience: 010\nmax-ttl-seconds: 60\nstore-ca: system\nstore: etcd://a:1\n",
		`{"listen": "127.0.0.1:9999", "jwt-issuer": "no", "jwt-audience": "010", "max-ttl-seconds": 60, "store-ca": "system", "store": "etcd://a:1"}`,
		"\ufefflisten: 127.0.0.1:9999\njwt-issuer: no\njwt-audience: 010\nmax-ttl-seconds: 60\nstore-ca: system\nstore: etcd://a:1\n",
	} {
		c := parsed(t, environment{envSecret: secret}, "--config", file(t, text))
		if c.listen != "127.0.0.1:9999" || c.issuer != "no" || c.audience != "010" ||
			time.Duration(c.maxTTL) != time.Minute || c.tls == nil {
			t.Errorf("%s: %+v", text, c)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "{}", "---\n"} {
		parsed(t, environment{envSecret: secret}, "--config", file(t, empty))
	}
	one := parsed(t, environment{envSecret: secret}, "--config", file(t, "log-level: warn\n"))
	if one.logLevel != "warn" {
		t.Errorf("a file of one line: %+v", one)
	}
}

// TestBadSettingsFile: a mistake is named with its line.
func TestBadSettingsFile(t *testing.T) {
	env := environment{envSecret: secret}
	for text, says := range map[string][]string{
		"listen: :1\nlissten: :1\n":           {"line 2", `"lissten"`},
		"\nLISTEN: :1\n":                      {"line 2", `"LISTEN"`},
		"log-level: warn\nlog-level: debug\n": {"line 2", "log-level", "already"},
		"listen:\n":                           {"line 1", "listen", "no value"},
		"a: b\n c: d: e\n":                    {"line"},
		"listen: [a, b]\n":                    {"line 1", "listen", "one plain value"},
		"listen: {a: b}\n":                    {"line 1", "listen", "one plain value"},
		"listen: &a b\nstore: *a\n":           {"line 1", "line 2", "one plain value"},
		"listen: !!str b\n":                   {"line 1", "one plain value"},
		"- listen\n":                          {"name: value"},
		"listen\n":                            {"name: value"},
		"drain-seconds: soon\n":               {"line 1", "drain-seconds", "must be a number of seconds"},
		"data-quota-mb: many\n":               {"line 1", "data-quota-mb", "must be a whole number"},
		"config: other\n":                     {"line 1", `"config"`, "cannot be set by a file"},
		"print-config: true\n":                {"line 1", `"print-config"`},
		"jwt-secret: s3cr3t\n":                {"line 1", `"jwt-secret"`},
		"listen: \"\n":                        {"line"},
	} {
		path := file(t, text)
		fails(t, exitConfig, env, []string{"--config", path}, append(says, path)...)
	}
	fails(t, 1, env, []string{"--config", "/none"}, "--config", "/none", "no such file")
	fails(t, 1, env, []string{"--config", t.TempDir()}, "--config", "not a regular file")
	fails(
		t, 1, env, []string{"--config", file(t, strings.Repeat("#", maxSettings+1))}, "--config",
		"longer than",
	)
	if r := command(t, env, "--config", file(t, "jwt-secret: marker-marker\n")); strings.Contains(
		r.errOut+r.out, "marker",
	) {
		t.Errorf("a secret in the wrong place is shown: %q", r.errOut)
	}
}

// TestEveryProblem: of all places and all kinds, in one message.
func TestEveryProblem(t *testing.T) {
	path := file(t, "lissten: :1\nlog-format: xml\ndrain-seconds: never\n")
	fails(t, exitConfig, environment{
		"FENCEPOST_MAX_HOLD_SECONDS": "soon", "FENCEPOST_LOG_LEVEL": "loud",
	}, []string{
		"--config", path, "--bogus", "--data-quota-mb=many", "--store", "etcd://a", "--store-cert",
		"/none", "--store-username", "root", "--store-ca", "/none", "--token-key-file", "/none",
		"--listen", "8080", "--trusted-proxy-hops", "17", "--webhook-ports", "https", "--fence-floor",
		"9007199254740991", "--drain-delay-seconds", "-1", "--max-ttl-seconds", "1",
	}, "lissten", "drain-seconds", "FENCEPOST_MAX_HOLD_SECONDS", "-bogus", "-data-quota-mb",
		`"a" is not host:port`, "--store-cert and --store-key need",
		"--store-username and", "--store-ca", "no key for bearer tokens", "--token-key-file", "--listen",
		"--trusted-proxy-hops", "--webhook-ports", "--fence-floor",
		"--drain-delay-seconds", "--max-ttl-seconds", "--log-format", "--log-level")
	fails(
		t, exitConfig, nil, []string{"--bogus", "1", "--ops-listen", "x", "--tls-cert", "x"}, "-bogus",
		"--ops-listen", "--tls-cert", "no key for bearer tokens",
	)
	fails(
		t, 1, nil, []string{"--jwks", "/none", "--jwt-secret-file", "/neither"}, "--jwks: stat /none",
		"--jwt-secret-file: open /neither",
	)
	fails(
		t, exitConfig, environment{envSecret: secret},
		[]string{"--jwt-secret-file", "/none", "--dev", "--jwks", "/neither"}, "contradicts",
		"open /none", "stat /neither",
	)
	fails(t, 1, nil, []string{"--jwks", file(t, `{"keys":[]}`)}, "--jwks: no usable key")
	fails(
		t, exitConfig, environment{envSecret: secret}, []string{"--store-ca", "/none", "--data-dir", ""},
		"--store-ca contradicts", "--data-dir is empty",
	)
}

// TestNothingBesideAProblem: a problem is reported once, and nothing that follows from what could
// not be read.
func TestNothingBesideAProblem(t *testing.T) {
	key := "jwt-secret-file: " + file(t, secret) + "\n"
	for _, c := range []struct {
		code int
		env  environment
		args []string
		says string // and nothing else
	}{
		{exitConfig, nil, []string{"--config", file(t, key+"listen: :1\nlisten: :2\n")}, "mapping key"},
		{1, nil, []string{"--config", "/none"}, "no such file"},
		{
			exitConfig, nil,
			[]string{"--config", file(t, key+"data-quota-mb: abc\n")},
			"line 2: data-quota-mb: must be a whole number",
		},
		{
			exitConfig, nil,
			[]string{"--config", file(t, key+"webhook-allow-http: maybe\n")},
			"webhook-allow-http: must be true or false",
		},
		{
			exitConfig,
			environment{envSecret: secret, "FENCEPOST_DATA_QUOTA_MB": "1e3"},
			nil,
			"FENCEPOST_DATA_QUOTA_MB: must be a whole number",
		},
		{
			exitConfig,
			environment{envSecret: secret, "FENCEPOST_DRAIN_DELAY_SECONDS": "soon"},
			nil,
			"FENCEPOST_DRAIN_DELAY_SECONDS: must be a number",
		},
		{
			exitConfig,
			environment{envSecret: secret},
			[]string{"--data-quota-mb=abc"},
			"--data-quota-mb: must be a whole number",
		},
	} {
		r := command(t, c.env, c.args...)
		problems := strings.Count(r.errOut, "; ")
		if r.code != c.code || !strings.Contains(r.errOut, c.says) || problems != 0 {
			t.Errorf("%q, %v: %d %q, want %d %q", c.args, c.env, r.code, r.errOut, c.code, c.says)
		}
	}
}

// TestPrintConfig: what is printed says where each value comes from, and is a file that comes
// to the same.
func TestPrintConfig(t *testing.T) {
	secretFile := file(t, secret)
	settings := file(t, "listen: 127.0.0.1:9999\nlog-level: warn\nmax-ttl-seconds: 1e5\n")
	env := environment{"FENCEPOST_LOG_LEVEL": "debug", "FENCEPOST_JWT_ISSUER": "a \"b\" # c\\\u00fc"}
	args := []string{"--config", settings, "--jwt-secret-file", secretFile}
	r := command(t, env, append(args, "--print-config")...)
	if r.code != 0 || r.errOut != "" {
		t.Fatalf("%+v", r)
	}
	for _, line := range []string{
		`listen: "127.0.0.1:9999" # file`, `log-level: "debug" # environment`,
		`jwt-secret-file: "` + secretFile + `" # flag`, `# store: "embedded" # default`,
	} {
		if !strings.Contains("\n"+r.out, "\n"+line+"\n") {
			t.Errorf("%s is not in %s", line, r.out)
		}
	}
	was, again := parsed(t, env, args...), parsed(t, nil, "--config", file(t, r.out))
	was.file, again.file = "", ""
	if !reflect.DeepEqual(was, again) {
		t.Errorf("%+v\nbecomes\n%+v", was, again)
	}
}

// TestPrintedWithoutSecrets: for every setting, also in a wrong place.
func TestPrintedWithoutSecrets(t *testing.T) {
	marker := "marker-marker-marker-marker-marker-marker"
	password := file(t, marker)
	for _, r := range []result{
		command(t, environment{envSecret: marker}, "--print-config"),
		command(
			t, nil, "--print-config", "--jwt-secret-file", password, "--token-key-file", password, "--store",
			"etcd://a:1", "--store-username", "root", "--store-password-file", password,
		),
		command(t, nil, "--print-config", "--jwks", "https://a:"+marker+"@b.example/keys"),
		command(t, nil, "--print-config", "--jwks", "https://b.example/keys?key="+marker),
		command(
			t, environment{envSecret: secret}, "--print-config", "--store", "etcd://root:"+marker+"@a:1",
		),
		command(
			t, environment{"FENCEPOST_TOKEN": marker, envSecret: secret}, "--print-config", "--log-level",
			"warn",
		),
	} {
		if strings.Contains(r.out+r.errOut, marker) || strings.Contains(r.out, secret) ||
			!strings.Contains(r.out, "listen: ") {
			t.Errorf("it prints %s and says %s", r.out, r.errOut)
		}
	}
	if r := command(t, environment{envSecret: marker}, "--print-config"); !strings.Contains(
		r.out, envSecret+" is (set)",
	) {
		t.Errorf("that there is a secret is not said: %s", r.out)
	}
	if r := command(t, nil, "--print-config"); r.code != exitConfig ||
		!strings.Contains(r.errOut, "no key for bearer tokens") {
		t.Errorf("what is printed was not checked: %+v", r)
	}
}

// TestUnknownVariables: they are warned of, by name.
func TestUnknownVariables(t *testing.T) {
	c := parsed(t, environment{
		envSecret: secret, "FENCEPOST_LISTENN": "marker", "FENCEPOST_ADDRESS": "",
		"FENCEPOST_LISTEN": ":1", "HOME": "/",
		"FENCEPOST_SERVICE_HOST": "10.0.0.1", "FENCEPOST_PORT_8080_TCP": "tcp://10.0.0.1:8080",
	})
	if len(c.warnings) != 1 ||
		!strings.HasSuffix(c.warnings[0], ": FENCEPOST_ADDRESS, FENCEPOST_LISTENN") {
		t.Errorf("%q", c.warnings)
	}
	if env := environmentOf([]string{"A=b=c", "D="}); !reflect.DeepEqual(
		env, environment{"A": "b=c", "D": ""},
	) {
		t.Errorf("%v", env)
	}
}

// TestSettingsPage: the tables of docs/reference/settings.md are those of --help-all. With
// UPDATE=1 in the environment the test writes them.
func TestSettingsPage(t *testing.T) {
	const page, first, last = "../../docs/reference/settings.md", "## Settings\n\n", "`api token`,"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), first)
	_, after, _ := strings.Cut(rest, last)
	want := before + first + settingsTables() + last + after
	if os.Getenv("UPDATE") != "" {
		text, err = []byte(want), os.WriteFile(page, []byte(want), 0o644)
	}
	if err != nil || string(text) != want {
		t.Errorf("%s is out of date (%v): run make generate", page, err)
	}
}

// settingsTables returns a table for each subject.
func settingsTables() string {
	var tables strings.Builder
	f := newConfig().flags(io.Discard)
	for _, g := range flagGroups() {
		fmt.Fprintf(&tables, "### %s\n\n| name | default | meaning |\n| --- | --- | --- |\n", g.subject)
		for _, name := range g.names(true) {
			fl := f.Lookup(name)
			value, usage := pflag.UnquoteUsage(fl)
			shown := ""
			if fl.DefValue != "" && fl.DefValue != "false" {
				shown = "`" + fl.DefValue + "`"
			}
			fmt.Fprintf(&tables, "| %s | %s | %s |\n",
				strings.TrimSpace("`"+name+"` "+value), shown, strings.ReplaceAll(usage, "*", `\*`))
		}
		tables.WriteString("\n")
	}
	return tables.String()
}

// Command sbom prints what a Go program is made of, as a CycloneDX 1.6 document: the
// modules that the go command noted in it, with their versions and checksums. The same
// program gives the same bytes.
//
//	go run ./deploy/sbom bin/api
//
// If a page built by npm is embedded, name its lock file too. What was needed to build it
// only is left out:
//
//	go run ./deploy/sbom bin/api dashboard/package-lock.json
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

type document struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Group      string     `json:"group,omitempty"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Licenses   []license  `json:"licenses,omitempty"`
	PURL       string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type license struct {
	Expression string `json:"expression"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 && len(args) != 2 {
		return errors.New("usage: sbom PROGRAM [PACKAGE-LOCK]")
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	d := describe(info)
	for _, lock := range args[1:] {
		embedded, err := fromNPM(lock)
		if err != nil {
			return err
		}
		d.Components = append(d.Components, embedded...)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

func describe(info *debug.BuildInfo) document {
	main := module("application", info.Main)
	main.Properties = []property{{"go:package", info.Path}}
	for _, s := range info.Settings {
		main.Properties = append(main.Properties, property{"go:build:" + s.Key, s.Value})
	}
	d := document{
		Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{main},
		// Go's library is a part of each program, and has vulnerabilities of its own.
		Components: []component{module("library", debug.Module{Path: "stdlib", Version: info.GoVersion})},
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		d.Components = append(d.Components, module("library", *m))
	}
	return d
}

func module(kind string, m debug.Module) component {
	if m.Version == "(devel)" { // which names nothing
		m.Version = ""
	}
	url := "pkg:golang/" + m.Path
	if m.Version != "" {
		url += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	c := component{Type: kind, Ref: url, Name: m.Path, Version: m.Version, PURL: url}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// lock is what is read of a package-lock.json, of version 2 or later.
type lock struct {
	Version  int                    `json:"lockfileVersion"`
	Packages map[string]lockPackage `json:"packages"`
}

// lockPackage is what npm knows of one folder below node_modules.
type lockPackage struct {
	Name        string // only if the folder has another
	Version     string
	Integrity   string // SHA-512 of what was fetched, as sha512- and base64
	License     string
	Dev         bool
	DevOptional bool
}

// fromNPM lists what a lock file has for programs that run: not what only builds or tests.
func fromNPM(path string) ([]component, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var l lock
	if err := json.Unmarshal(b, &l); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if l.Version < 2 || len(l.Packages) == 0 {
		return nil, fmt.Errorf("%s: this is no package-lock.json of version 2 or later", path)
	}
	all := map[string]component{}
	for folder, p := range l.Packages {
		_, inFolder, installed := cutLast(folder, "node_modules/")
		if !installed || p.Dev || p.DevOptional {
			continue
		}
		if p.Name == "" {
			p.Name = inFolder
		}
		c, err := p.component()
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, folder, err)
		}
		all[c.Ref] = c // once, wherever it is installed
	}
	sorted := make([]component, 0, len(all))
	for _, c := range all {
		sorted = append(sorted, c)
	}
	slices.SortFunc(sorted, func(a, b component) int { return strings.Compare(a.Ref, b.Ref) })
	return sorted, nil
}

func (p lockPackage) component() (component, error) {
	url := "pkg:npm/" + strings.Replace(p.Name, "@", "%40", 1) + "@" + p.Version
	c := component{Type: "library", Ref: url, Name: p.Name, Version: p.Version, PURL: url}
	if scope, name, ok := strings.Cut(p.Name, "/"); ok {
		c.Group, c.Name = scope, name
	}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(p.Integrity, "sha512-"))
	if err != nil || len(sum) != 64 {
		return component{}, fmt.Errorf("there is no checksum in %q", p.Integrity)
	}
	c.Hashes = []hash{{"SHA-512", hex.EncodeToString(sum)}}
	if p.License != "" {
		c.Licenses = []license{{p.License}}
	}
	return c, nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// system is a lock to judge: its worker, and what its documents say about it.
type system struct {
	Title    string            `json:"title"`
	Server   string            `json:"server"` // a folder in servers, or a path from the system's folder
	Build    []string          `json:"build"`
	Worker   []string          `json:"worker"`
	Version  []string          `json:"version"`
	Claims   map[string]string `json:"claims"`
	Settings []setting         `json:"settings"`
	FakeTime bool              `json:"faketime"` // its worker reads the clock through the C library
	FreesIn  int               `json:"frees_within_s"`
	Notes    string            `json:"notes"`

	name    string
	folder  string
	address string // of a server that the harness did not start
}

// setting is how the system is used, and where its documents say so.
type setting struct {
	What   string `json:"what"`
	Source string `json:"source"`
}

// claims are the words that rows ask for, each with the value of a system that does not name it.
func defaultClaims() map[string]string {
	return map[string]string{
		"exclusion": "yes", "frees": "yes", "survives_restart": "no", "survives_failover": "no",
		"order": "no", "fence": "no", "tells_loss": "no", "clock": "yes", "waits": "",
	}
}

func readSystem(folder string) (*system, error) {
	text, err := os.ReadFile(filepath.Join(folder, "system.json"))
	if err != nil {
		return nil, err
	}
	s := &system{name: filepath.Base(folder)}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s/system.json: %w", folder, err)
	}
	for claim := range s.Claims {
		if _, known := defaultClaims()[claim]; !known {
			return nil, fmt.Errorf("%s/system.json: no row asks for the claim %q", folder, claim)
		}
	}
	if len(s.Worker) == 0 {
		return nil, fmt.Errorf("%s/system.json: there is no worker", folder)
	}
	s.folder, err = filepath.Abs(folder)
	return s, err
}

// claim returns what the system says of a property: "yes", "no", or more.
func (s *system) claim(name string) string {
	if said, ok := s.Claims[name]; ok {
		return said
	}
	return defaultClaims()[name]
}

func (s *system) claims(name string) bool { return strings.HasPrefix(s.claim(name), "yes") }

// freesWithin is how long the lock of a dead holder may stay taken.
func (s *system) freesWithin() time.Duration {
	if s.FreesIn > 0 {
		return time.Duration(s.FreesIn) * time.Second
	}
	return 5 * ttl
}

// serverFolder returns the folder of the server's scripts, or "" if the lock has no server.
func (s *system) serverFolder(home string) string {
	switch {
	case s.Server == "":
		return ""
	case strings.Contains(s.Server, "/"):
		return filepath.Join(s.folder, s.Server)
	}
	return filepath.Join(home, "servers", s.Server)
}

// prepare installs the server, builds the worker, and returns the versions of both.
func (s *system) prepare(home string) (version, serverVersion string, err error) {
	if folder := s.serverFolder(home); folder != "" {
		for _, script := range []string{"install", "version"} {
			program := filepath.Join(folder, script)
			if _, missing := os.Stat(program); missing != nil {
				continue
			}
			text, err := output(folder, nil, program)
			if err != nil {
				return "", "", err
			}
			if script == "version" {
				serverVersion = text
			}
		}
	}
	if len(s.Build) > 0 {
		if _, err := output(s.folder, nil, s.Build...); err != nil {
			return "", "", err
		}
	}
	if len(s.Version) > 0 {
		version, err = output(s.folder, nil, s.Version...)
	}
	return version, serverVersion, err
}

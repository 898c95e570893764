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
	FakeTime bool              `json:"faketime"` // its worker reads the time of day through the C library
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

// defaultClaims are the properties that rows ask for, and what a system claims if it is silent.
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
	s := &system{name: filepath.Base(folder), folder: folder}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s/system.json: %w", folder, err)
	}
	if len(s.Worker) == 0 {
		return nil, fmt.Errorf("%s/system.json: there is no worker", folder)
	}
	return s, s.fillClaims()
}

func (s *system) fillClaims() error {
	all := defaultClaims()
	for claim, said := range s.Claims {
		if _, known := all[claim]; !known {
			return fmt.Errorf("%s: no row asks for the claim %q", s.name, claim)
		}
		all[claim] = said
	}
	s.Claims = all
	return nil
}

func (s *system) claims(name string) bool { return strings.HasPrefix(s.Claims[name], "yes") }

// freesWithin is how long the lock of a dead holder may stay taken.
func (s *system) freesWithin() time.Duration {
	if s.FreesIn > 0 {
		return time.Duration(s.FreesIn) * time.Second
	}
	return 5 * ttl
}

// server returns the system's server, or nil if the lock has none that the harness starts.
func (s *system) server(home string) *server {
	switch {
	case s.Server == "" || s.address != "":
		return nil
	case strings.Contains(s.Server, "/"):
		return &server{folder: filepath.Join(s.folder, s.Server)}
	}
	return &server{folder: filepath.Join(home, "servers", s.Server)}
}

// prepare installs the server, builds the worker, and returns the versions of both.
func (s *system) prepare(server *server) (version, serverVersion string, err error) {
	if server != nil && server.has("install") {
		if err := server.script(installs, "install"); err != nil {
			return "", "", err
		}
	}
	if server != nil && server.has("version") {
		serverVersion, err = output(installs, server.folder, filepath.Join(server.folder, "version"))
	}
	if err == nil && len(s.Build) > 0 {
		_, err = output(installs, s.folder, s.Build...)
	}
	if err == nil && len(s.Version) > 0 {
		version, err = output(installs, s.folder, s.Version...)
	}
	return version, serverVersion, err
}

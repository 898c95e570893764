package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Context is a server of the configuration file.
type Context struct {
	// URL of the server, or several with commas in between.
	URL string `json:"url"`
	// Token is the bearer token.
	Token string `json:"token,omitempty"`
	// TokenFile has the bearer token.
	TokenFile string `json:"token_file,omitempty"`
	// CAFile has the authorities of the server's certificate.
	CAFile string `json:"ca_file,omitempty"`
	// Issuer is the OpenID Connect provider of login, and ClientID the ID of this program there.
	Issuer   string `json:"oidc_issuer,omitempty"`
	ClientID string `json:"oidc_client_id,omitempty"`
}

// File is the configuration file.
type File struct {
	// Current is the context that commands use by default.
	Current  string             `json:"current,omitempty"`
	Contexts map[string]Context `json:"contexts,omitempty"`
}

// Path of the configuration file; empty without a home directory.
func Path() string {
	if path := os.Getenv("FENCEPOST_CLI_CONFIG"); path != "" {
		return path
	}
	if folder := os.Getenv("XDG_CONFIG_HOME"); folder != "" {
		return filepath.Join(folder, "fencepost", "config")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".config", "fencepost", "config")
}

// Load reads the configuration file. If there is none, it returns an empty File. It rejects a file
// that other users may read, as it may have a token.
func Load() (File, error) {
	file, path := File{Contexts: map[string]Context{}}, Path()
	if path == "" {
		return file, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return file, nil
	case err != nil:
		return file, err
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return file, fmt.Errorf("other users may read %s: chmod 600 it", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return file, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	if file.Contexts == nil {
		file.Contexts = map[string]Context{}
	}
	return file, nil
}

// Save writes the configuration file, which only its owner can read.
func (f File) Save() error {
	path := Path()
	if path == "" {
		return errors.New("there is no home directory: set FENCEPOST_CLI_CONFIG")
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(text, '\n'))
}

// Replace writes a file that its owner alone can read, whole or not at all.
func Replace(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".new-") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(fresh.Name()) }() // after the rename there is none
	_, err = fresh.Write(text)
	if err := errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), path)
}

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Program is a running program of a test: a server of another project, or a worker.
type Program struct {
	running
}

// ProgramConfig says what to run.
type ProgramConfig struct {
	// Binary with Args and, added to the environment, Env (KEY=value).
	Binary    string
	Args, Env []string
	// Log receives what the program writes.
	Log string
	// Unprivileged runs it as the user nobody if the caller is root: some servers refuse root.
	Unprivileged bool
}

// StartProgram starts a program.
func StartProgram(config ProgramConfig) (*Program, error) {
	p := &Program{running{log: config.Log}}
	attributes := dieWithParent()
	if config.Unprivileged && os.Getuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	var err error
	p.process, err = startProcessAs(attributes, config.Binary, config.Log, config.Args, config.Env)
	return p, err
}

// Await polls check until it returns nil, or ctx or the program ends.
func (p *Program) Await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	return p.process.await(ctx, what, check)
}

// Output returns what the program has written so far.
func (p *Program) Output() ([]byte, error) { return p.process.output() }

// Exited is closed when the program has ended.
func (p *Program) Exited() <-chan struct{} { return p.process.exited }

// Wait waits for the end of a program that ends by itself. Another exit code than 0 is an error.
func (p *Program) Wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*startTimeout)
	defer cancel()
	select {
	case <-p.process.exited:
	case <-ctx.Done():
		return fmt.Errorf("wait for the end: %w: %s", ctx.Err(), p.process.tail())
	}
	if p.process.err != nil {
		return fmt.Errorf("%w: %s", p.process.err, p.process.tail())
	}
	return nil
}

// End sends a signal, and kills the program if it is still there after 30 s.
func (p *Program) End(with syscall.Signal) error {
	if err := p.process.signal(with); err != nil {
		return p.Kill()
	}
	select {
	case <-p.process.exited:
		return nil
	case <-time.After(30 * time.Second):
		return errors.Join(fmt.Errorf("the program ignores %s", with), p.Kill())
	}
}

// nobody is the id of that user and its group on Linux.
const nobody = 65534

// open makes a folder that an unprivileged program can write, and reach from the folder of
// temporary files.
func open(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if os.Getuid() != 0 {
		return nil
	}
	top := filepath.Clean(os.TempDir())
	for d := filepath.Dir(dir); strings.HasPrefix(d, top+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o711); err != nil { //nolint:gosec // others pass through, and list nothing
			return err
		}
	}
	return os.Chown(dir, nobody, nobody)
}

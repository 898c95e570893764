// Package architecture checks which package imports which, so that the layout
// that docs/internals/architecture.md draws stays true. Its test needs only the go command.
package architecture

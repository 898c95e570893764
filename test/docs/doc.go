// Package docs runs the examples of the documents: its test starts a server for each page and runs
// the page's blocks that are marked run. docs/internals/testing.md says how to mark a block.
package docs

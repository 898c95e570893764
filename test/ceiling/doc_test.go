// Package ceiling_test fills the built server until it has no memory for new work.
package ceiling_test

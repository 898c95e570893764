// Package tfstate keeps a state of Terraform where a late write of an earlier holder is refused.
package tfstate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// MaxSize of a state in bytes.
const MaxSize = 64 << 20

// State is where a state is kept, with the fence of its last holder.
type State interface {
	// Raise makes Write fail for lower fences from now on. It returns a [*StaleError] if the fence
	// is already higher.
	Raise(ctx context.Context, fence uint64) error
	// Read returns the state, empty if there is none.
	Read(ctx context.Context) ([]byte, error)
	// Write replaces the state, or deletes it without data, and keeps the fence. It returns a
	// [*StaleError] if the fence is higher.
	Write(ctx context.Context, fence uint64, data []byte) error
}

// StaleError means that a later holder was here.
type StaleError struct{ Fence, Known uint64 }

func (s *StaleError) Error() string {
	return fmt.Sprintf("a later holder has locked it (fence %d, this command has %d)", s.Known, s.Fence)
}

func compare(fence, known uint64) error {
	if fence < known {
		return &StaleError{fence, known}
	}
	return nil
}

// Open returns the state of an address. In a database, its name is that of the lock.
func Open(address, lock string) (State, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	bucket, key, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	switch {
	case scheme == "file" && rest != "":
		return newFile(rest)
	case scheme == "s3" && bucket != "" && key != "":
		return newS3(bucket, key)
	case scheme == "postgres", scheme == "postgresql":
		config, err := pgconn.ParseConfig(address)
		return &postgresql{config, lock}, err
	}
	return nil, errors.New("--state must be file:PATH, s3://BUCKET/KEY or postgres://HOST/DATABASE")
}

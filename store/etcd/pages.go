package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
)

// readData opens the first size bytes of a data file for read. What is damaged in it shows as a
// panic of bbolt's or as a fault, in this goroutine, and is an error.
func readData(path string, size int64, read func(*bbolt.Tx, *pages) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("what is in it is no database of etcd's: %v", r)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	return db.View(func(tx *bbolt.Tx) error {
		if whole := tx.Size(); size < whole {
			return fmt.Errorf("it has %d bytes and should have %d", size, whole)
		}
		p := &pages{file: io.NewSectionReader(file, 0, size), size: db.Info().PageSize, seen: map[uint64]struct{}{}}
		if err := p.follow(tx.Cursor().Bucket()); err != nil {
			return err
		}
		return read(tx, p)
	})
}

// pages are those of a data file. bbolt goes from one to the next as they say, also where they
// lead in a circle, and takes memory at each step until the system ends the process.
type pages struct {
	file io.ReaderAt
	size int
	seen map[uint64]struct{}
}

// What bbolt has in a page: its head, with the kind and how many there are in it, and in one that
// leads to others for each of these an element, with the number of the page at its end.
const (
	headOfPage    = 16
	kindAt        = 8
	countAt       = 10
	kindOfBranch  = 0x01
	sizeOfElement = 16
	leadsToAt     = 8
)

// follow goes through a bucket's pages before bbolt does, each once. A bucket that is within the
// page of its name has none.
func (p *pages) follow(b *bbolt.Bucket) error {
	if b.Root() == 0 {
		return nil
	}
	next := []uint64{uint64(b.Root())}
	for len(next) > 0 {
		at := next[len(next)-1]
		if _, again := p.seen[at]; again {
			return fmt.Errorf("more than one page leads to page %d", at)
		}
		p.seen[at] = struct{}{}
		leads, err := p.leads(at)
		if err != nil {
			return fmt.Errorf("page %d cannot be read: %w", at, err)
		}
		next = append(next[:len(next)-1], leads...)
	}
	return nil
}

var errEmptyBranch = errors.New("it leads nowhere")

// leads returns where a page leads to.
func (p *pages) leads(at uint64) ([]uint64, error) {
	start := int64(at) * int64(p.size)
	head := make([]byte, headOfPage)
	if _, err := p.file.ReadAt(head, start); err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint16(head[kindAt:])&kindOfBranch == 0 {
		return nil, nil
	}
	to := make([]uint64, binary.NativeEndian.Uint16(head[countAt:]))
	if len(to) == 0 {
		return nil, errEmptyBranch
	}
	elements := make([]byte, len(to)*sizeOfElement)
	if _, err := p.file.ReadAt(elements, start+headOfPage); err != nil {
		return nil, err
	}
	for i := range to {
		to[i] = binary.NativeEndian.Uint64(elements[i*sizeOfElement+leadsToAt:])
	}
	return to, nil
}

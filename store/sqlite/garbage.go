package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// blobsPerRemoval is the number of blobs that one transaction removes. Other writers
// wait during the transaction.
const blobsPerRemoval = 64

// Sweep implements eventlog.Sweeper. The leftovers are spool files of bodies that were
// never written. With remove, Sweep also empties the write-ahead log, because an
// interrupted erasure may have left bytes there.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		if err := s.sweep(ctx, remove, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.FilePlace{}, fmt.Errorf("sweep %s: %w", s.path, err))
		}
	}
}

func (s *Store) sweep(ctx context.Context, remove bool, yield func(eventlog.FilePlace, error) bool) error {
	if s.options.ReadOnly && remove {
		return eventlog.ErrReadOnly
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	spools, err := s.spools()
	if err != nil {
		return err
	}
	for _, l := range spools {
		if remove {
			if err := os.Remove(l.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if !yield(l, nil) {
			return errStop
		}
	}
	if !remove {
		return nil
	}
	return s.scrub(ctx)
}

// spools lists the spool files that still have a name. A running PutBlob removes the
// name at once.
func (s *Store) spools() ([]eventlog.FilePlace, error) {
	folder := filepath.Dir(s.path)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var spools []eventlog.FilePlace
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), filepath.Base(s.path)+spoolInfix)
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" || !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		spools = append(spools, eventlog.FilePlace{Path: filepath.Join(folder, entry.Name()), Bytes: info.Size()})
	}
	return spools, nil
}

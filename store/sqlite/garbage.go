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

// removedAtOnce is how many blobs are removed in one transaction, while which
// other writers wait.
const removedAtOnce = 64

// Sweep implements eventlog.Sweeper: files of bodies that were never written.
// With remove it empties the write-ahead log, in which an erasure that was
// interrupted may have left bytes.
func (s *Store) Sweep(ctx context.Context, remove bool) iter.Seq2[eventlog.Leftover, error] {
	return func(yield func(eventlog.Leftover, error) bool) {
		if err := s.sweep(ctx, remove, yield); err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Leftover{}, fmt.Errorf("sweep %s: %w", s.path, err))
		}
	}
}

func (s *Store) sweep(ctx context.Context, remove bool, yield func(eventlog.Leftover, error) bool) error {
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

// spools lists the files of bodies that wait to be written, which have a name
// for a moment only.
func (s *Store) spools() ([]eventlog.Leftover, error) {
	folder := filepath.Dir(s.path)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var spools []eventlog.Leftover
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
		spools = append(spools, eventlog.Leftover{Path: filepath.Join(folder, entry.Name()), Bytes: info.Size()})
	}
	return spools, nil
}

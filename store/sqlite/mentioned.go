package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/needle"
	"github.com/convlog/convlog/internal/regular"
)

// Mentioned implements eventlog.Sweeper. It reads the backup copies beside the
// database.
func (s *Store) Mentioned(ctx context.Context) iter.Seq2[event.Digest, error] {
	return func(yield func(event.Digest, error) bool) {
		err := s.open(ctx)
		var entries []os.DirEntry
		if err == nil {
			entries, err = os.ReadDir(filepath.Dir(s.path))
		}
		for i := 0; i < len(entries) && err == nil; i++ {
			if strings.HasPrefix(entries[i].Name(), filepath.Base(s.path)+copyInfix) {
				err = fileDigests(ctx, filepath.Join(filepath.Dir(s.path), entries[i].Name()), yield)
			}
		}
		if err != nil && !errors.Is(err, errStop) {
			yield("", fmt.Errorf("read the backup copies beside %s: %w", s.path, err))
		}
	}
}

// fileDigests yields the digests in a file.
func fileDigests(ctx context.Context, path string, yield func(event.Digest, error) bool) error {
	f, err := regular.Open(path, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for d, err := range needle.Digests(contextReader{ctx, f}) {
		if err != nil {
			return err
		}
		if !yield(event.Digest(d), nil) {
			return errStop
		}
	}
	return nil
}

package jsonl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/needle"
)

// FindBytes implements eventlog.ByteFinder. It reads every file below the store's
// folder.
func (s *Store) FindBytes(ctx context.Context, needles [][]byte) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		err := s.beginCall("search the files of", s.dir)
		if err == nil {
			defer s.endCall()
			err = s.findBelow(ctx, ".", needles, yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(eventlog.FilePlace{}, fmt.Errorf("search the files of %s: %w", s.dir, err))
		}
	}
}

func (s *Store) findBelow(ctx context.Context, dir string, needles [][]byte, yield func(eventlog.FilePlace, error) bool) error {
	entries, err := s.fs.ReadDir(dir)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		switch {
		case entry.IsDir():
			err = s.findBelow(ctx, name, needles, yield)
		case entry.Type().IsRegular():
			err = s.findIn(ctx, name, needles, yield)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) findIn(ctx context.Context, name string, needles [][]byte, yield func(eventlog.FilePlace, error) bool) (err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	for at, err := range needle.In(ctx, file, needles) {
		if err != nil {
			return err
		}
		if !yield(eventlog.FilePlace{Path: s.path(name), Offset: at}, nil) {
			return errStop
		}
	}
	return nil
}

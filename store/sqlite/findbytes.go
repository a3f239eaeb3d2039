package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/needle"
)

const (
	readPageSize = `PRAGMA page_size`
	// allPages reads the pages of the file, free pages too. To open the file again would
	// lose SQLite's locks on it when that descriptor is closed.
	allPages   = `SELECT pgno, data FROM sqlite_dbpage('main') WHERE pgno > ? AND pgno <= ? ORDER BY pgno`
	countPages = `PRAGMA page_count`

	pagesPerRead = 256
)

// FindBytes implements eventlog.ByteFinder. It reads every page of the database, the
// write-ahead log and the other files with the database's name. It does not find bytes
// that are divided between two pages.
func (s *Store) FindBytes(ctx context.Context, needles [][]byte) iter.Seq2[eventlog.FilePlace, error] {
	return func(yield func(eventlog.FilePlace, error) bool) {
		err := s.findInPages(ctx, needles, yield)
		if err == nil {
			err = s.findInFiles(ctx, needles, yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(eventlog.FilePlace{}, fmt.Errorf("search the files of %s: %w", s.path, err))
		}
	}
}

func (s *Store) findInPages(ctx context.Context, needles [][]byte, yield func(eventlog.FilePlace, error) bool) error {
	for after, more := int64(0), true; more; after += pagesPerRead {
		var found []int64
		err := s.read(ctx, func(c *conn) error {
			size, err := c.number(readPageSize)
			if err != nil {
				return err
			}
			count, err := c.number(countPages)
			if err != nil {
				return err
			}
			found, more = found[:0], after+pagesPerRead < count
			return c.each(func(row []driver.Value) {
				number, _ := row[0].(int64)
				page, _ := row[1].([]byte)
				for _, at := range needle.Places(page, needles) {
					found = append(found, (number-1)*size+int64(at))
				}
			}, 2, allPages, after, after+pagesPerRead)
		})
		if err != nil {
			return err
		}
		for _, at := range found {
			if !yield(eventlog.FilePlace{Path: s.path, Offset: at}, nil) {
				return errStop
			}
		}
	}
	return nil
}

// findInFiles reads the files beside the database that have its name and a suffix.
func (s *Store) findInFiles(ctx context.Context, needles [][]byte, yield func(eventlog.FilePlace, error) bool) error {
	folder := filepath.Dir(s.path)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		suffix, ok := strings.CutPrefix(entry.Name(), filepath.Base(s.path))
		if !ok || suffix == "" || suffix == "-shm" || !entry.Type().IsRegular() {
			continue
		}
		if err := findInFile(ctx, filepath.Join(folder, entry.Name()), needles, yield); err != nil {
			return err
		}
	}
	return nil
}

func findInFile(ctx context.Context, path string, needles [][]byte, yield func(eventlog.FilePlace, error) bool) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for at, err := range needle.In(ctx, file, needles) {
		if err != nil {
			return err
		}
		if !yield(eventlog.FilePlace{Path: path, Offset: at}, nil) {
			return errStop
		}
	}
	return nil
}

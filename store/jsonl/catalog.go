package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// catalogDir is the folder of the catalog. The row of a session is a file with the name
// of the session's file and another extension. A row is written in place and not
// synced: its reader finds out that it is torn.
const (
	catalogDir   = ".catalog"
	rowExtension = ".row"
)

// maxCatalogRow bounds the file of a row. A longer file is none of the store's.
const maxCatalogRow = 1 << 20

var _ eventlog.Cataloger = (*Store)(nil)

// rowOf returns the name of the row of a session's file.
func rowOf(name string) string {
	return catalogDir + "/" + strings.TrimSuffix(name, extension) + rowExtension
}

// CatalogRows implements eventlog.Cataloger. A row that cannot be read is missing.
func (s *Store) CatalogRows(ctx context.Context, sessions []string) (map[string][]byte, error) {
	if err := s.beginCall("read the catalog of", s.dir); err != nil {
		return nil, err
	}
	defer s.endCall()
	rows := make(map[string][]byte, len(sessions))
	for _, session := range sessions {
		if err := s.alive(ctx); err != nil {
			return nil, err
		}
		if row, err := s.readDerived(rowOf(fileOf(session)), maxCatalogRow); err == nil {
			rows[session] = row
		}
	}
	return rows, nil
}

// readDerived reads a file of the catalog of at most most bytes.
func (s *Store) readDerived(name string, most int) (row []byte, err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, file)
	row = make([]byte, 4<<10)
	for n := 0; ; {
		more, err := readFull(file, row[n:], int64(n))
		if n += more; err != nil || n < len(row) {
			return row[:n], err
		}
		if n > most {
			return nil, fmt.Errorf("%s is longer than %d bytes", s.path(name), most)
		}
		row = append(row, make([]byte, len(row))...)
	}
}

// PutCatalogRows implements eventlog.Cataloger.
func (s *Store) PutCatalogRows(ctx context.Context, rows []eventlog.CatalogRow) error {
	if err := s.beginChange("write the catalog of", s.dir); err != nil {
		return err
	}
	defer s.endCall()
	if len(rows) == 0 {
		return nil
	}
	if err := s.fs.Mkdir(catalogDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the catalog: %w", err)
	}
	for _, row := range rows {
		if err := s.alive(ctx); err != nil {
			return err
		}
		now, err := s.Version(ctx, row.Session)
		if err != nil || now != row.At {
			continue
		}
		if err := s.writeRow(rowOf(fileOf(row.Session)), row.Data); err != nil {
			return fmt.Errorf("catalog session %q: %w", row.Session, err)
		}
	}
	return nil
}

func (s *Store) writeRow(name string, row []byte) (err error) {
	file, err := s.fs.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	return writeAll(file, row)
}

// removeRow removes the session's row and the cursors of imports, durably. An earlier removal
// may be unsynced, so a missing row is synced too.
func (h *handle) removeRow() error {
	if _, err := h.store.fs.Stat(catalogDir); isAbsent(err) {
		return nil
	}
	for _, name := range []string{rowOf(h.name), cursorsName} {
		if err := h.store.fs.Remove(name); err != nil && !isAbsent(err) {
			return err
		}
	}
	return h.store.fs.SyncDir(catalogDir)
}

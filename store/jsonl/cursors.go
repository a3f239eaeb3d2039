package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/convlog/convlog/internal/importrun"
)

// cursorsName is the file with the cursors of imports. It is written in place and not synced.
const cursorsName = catalogDir + "/imports"

var _ importrun.CursorStore = (*Store)(nil)

// ImportCursors returns what imports know of the files that they have read.
func (s *Store) ImportCursors(context.Context) ([]byte, error) {
	if err := s.beginCall("read the cursors of", s.dir); err != nil {
		return nil, err
	}
	defer s.endCall()
	cursors, err := s.readDerived(cursorsName, maxCursors)
	if isAbsent(err) {
		return nil, nil
	}
	return cursors, err
}

// maxCursors bounds the file of the cursors.
const maxCursors = 1 << 30

// PutImportCursors replaces what imports know of the files that they have read.
func (s *Store) PutImportCursors(_ context.Context, cursors []byte) error {
	if err := s.beginChange("write the cursors of", s.dir); err != nil {
		return err
	}
	defer s.endCall()
	if err := s.fs.Mkdir(catalogDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the catalog: %w", err)
	}
	return s.writeDerived(cursorsName, cursors)
}

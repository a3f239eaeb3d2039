package jsonl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

// catalogDir is the folder of the catalog. Its files have the rows of many sessions each, so that
// a list opens few files. A file is replaced as a whole and not synced: a lost or damaged one is
// derived anew.
const (
	catalogDir   = ".catalog"
	rowExtension = ".rows"
)

// maxCatalogRows bounds a file of rows. A longer file is none of the store's.
const maxCatalogRows = 1 << 30

var _ eventlog.Cataloger = (*Store)(nil)

// CatalogGroup is the number of the file that has the row of a session. A caller that reads many
// rows reads those of a group together.
func (s *Store) CatalogGroup(session string) uint8 {
	return uint8(crc32.ChecksumIEEE([]byte(session)))
}

// rowsName is the name of the file with the rows of a group.
func rowsName(group uint8) string { return fmt.Sprintf("%s/%02x%s", catalogDir, group, rowExtension) }

// CatalogRows implements eventlog.Cataloger. A row that cannot be read is missing.
func (s *Store) CatalogRows(ctx context.Context, sessions []string) (map[string][]byte, error) {
	if err := s.beginCall("read the catalog of", s.dir); err != nil {
		return nil, err
	}
	defer s.endCall()
	rows := make(map[string][]byte, len(sessions))
	groups := map[uint8]groupRows{}
	for _, session := range sessions {
		if err := s.alive(ctx); err != nil {
			return nil, err
		}
		group := s.CatalogGroup(session)
		stored, ok := groups[group]
		if !ok {
			stored = s.readRows(group)
			groups[group] = stored
		}
		if row, ok := stored[session]; ok {
			rows[session] = row
		}
	}
	return rows, nil
}

// groupRows are the rows of a group by session.
type groupRows map[string][]byte

// readRows reads the rows of a group. Of a damaged file it returns the rows before the damage.
func (s *Store) readRows(group uint8) groupRows {
	data, err := s.readDerived(rowsName(group), maxCatalogRows)
	if err != nil {
		return nil
	}
	rows := make(groupRows)
	for len(data) > 0 {
		var session, row []byte
		var ok, ok2 bool
		session, data, ok = cutField(data)
		row, data, ok2 = cutField(data)
		if !ok || !ok2 {
			break
		}
		rows[string(session)] = row
	}
	return rows
}

// cutField returns the bytes after their length, and the rest.
func cutField(data []byte) (field, rest []byte, ok bool) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return data[n:end:end], data[end:], true
}

func appendField[T string | []byte](data []byte, field T) []byte {
	return append(binary.AppendUvarint(data, uint64(len(field))), field...)
}

// readDerived reads a file of the catalog of at most most bytes.
func (s *Store) readDerived(name string, most int64) (data []byte, err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, file)
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size > most {
		return nil, fmt.Errorf("%s is longer than %d bytes", s.path(name), most)
	}
	data = make([]byte, info.Size)
	n, err := readFull(file, data, 0)
	return data[:n], err
}

// PutCatalogRows implements eventlog.Cataloger. The store lock keeps erasures away. If two
// processes put rows of a group at the same time, the rows of one may be lost.
func (s *Store) PutCatalogRows(ctx context.Context, rows []eventlog.CatalogRow) error {
	if err := s.beginChange("write the catalog of", s.dir); err != nil {
		return err
	}
	defer s.endCall()
	groups := map[uint8][]eventlog.CatalogRow{}
	for _, row := range rows {
		if err := s.alive(ctx); err != nil {
			return err
		}
		if now, err := s.Version(ctx, row.Session); err == nil && now == row.At {
			group := s.CatalogGroup(row.Session)
			groups[group] = append(groups[group], row)
		}
	}
	if len(groups) == 0 {
		return nil
	}
	if err := s.fs.Mkdir(catalogDir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the catalog: %w", err)
	}
	s.putting.Lock()
	defer s.putting.Unlock()
	for group, rows := range groups {
		if err := s.alive(ctx); err != nil {
			return err
		}
		stored := s.readRows(group)
		if stored == nil {
			stored = make(groupRows, len(rows))
		}
		for _, row := range rows {
			stored[row.Session] = row.Data
		}
		if err := s.writeRows(group, stored); err != nil {
			return fmt.Errorf("write the catalog: %w", err)
		}
	}
	return nil
}

// writeRows replaces the rows of a group.
func (s *Store) writeRows(group uint8, rows groupRows) error {
	var data []byte
	for session, row := range rows {
		data = appendField(appendField(data, session), row)
	}
	temp := rowsName(group) + tempSuffix
	if err := s.writeDerived(temp, data); err != nil {
		return err
	}
	return s.fs.Rename(temp, rowsName(group))
}

// writeDerived writes a file of the catalog.
func (s *Store) writeDerived(name string, data []byte) (err error) {
	file, err := s.fs.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	return writeAll(file, data)
}

// removeRow removes the session's row and the cursors of imports, durably. An earlier removal
// may be unsynced, so a missing row is synced too.
func (h *handle) removeRow() error {
	s := h.store
	if _, err := s.fs.Stat(catalogDir); isAbsent(err) {
		return nil
	}
	s.putting.Lock()
	defer s.putting.Unlock()
	group := s.CatalogGroup(h.session)
	name := rowsName(group)
	rows := s.readRows(group)
	delete(rows, h.session)
	remove := []string{cursorsName, name + tempSuffix}
	if len(rows) == 0 {
		remove = append(remove, name) // also a file that cannot be read
	}
	for _, name := range remove {
		if err := s.fs.Remove(name); err != nil && !isAbsent(err) {
			return err
		}
	}
	if len(rows) > 0 {
		if err := s.writeRows(group, rows); err != nil {
			return err
		}
	}
	return s.fs.SyncDir(catalogDir)
}

// unusedRows returns the files with a row of a session without a file, and unfinished ones.
func (s *Store) unusedRows() ([]string, error) {
	names, err := s.listFiles(catalogDir, func(string) bool { return true })
	if len(names) == 0 || err != nil {
		return nil, err
	}
	files, err := s.listFiles(".", func(name string) bool { return strings.HasSuffix(name, extension) })
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool {
		var group uint8
		if n, _ := fmt.Sscanf(name, catalogDir+"/%02x", &group); n == 0 || name != rowsName(group) {
			return name == cursorsName
		}
		for session := range s.readRows(group) {
			if _, used := slices.BinarySearch(files, fileOf(session)); !used {
				return false
			}
		}
		return true
	}), nil
}

package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/eventlog"
)

// Places in the header of a database file, which is at the start of its first page.
const (
	headerChanges  = 24 // how often the file was changed
	headerPages    = 28 // the number of pages
	headerFree     = 32 // the first free page, and the number of free pages
	headerValidFor = 92 // the change for which the number of pages is right
)

// firstPageBytes is the size of a page. SQLite's default has been the same since 2016.
const firstPageBytes = 4096

// CopyWithFirstPage copies a database whose first page is lost to a new file, and gives the copy
// a new first page: that page names the tables and the pages where they begin, and both are the
// same in every database of this version. copied is false if the first page is readable, or if
// the rest is no database of this program. No process may use the database. The copy is for a
// salvage: its free pages are not counted.
func (s *Store) CopyWithFirstPage(ctx context.Context, to string) (copied bool, err error) {
	c, err := dialReadable(s.path, "mode=ro&immutable=1", "")
	if err == nil {
		return false, c.close()
	}
	if other := (notDatabase{}); errors.As(err, &other) && other.ofAnother || !errors.Is(err, eventlog.ErrCorrupt) && !isDamage(err) {
		return false, nil
	}
	page, roots, err := newFirstPage(ctx)
	if err == nil {
		copied, err = copyWithPage(s.path, to, page, roots)
	}
	return copied, wrap("copy "+s.path+" with a new first page", err)
}

// newFirstPage returns the first page of an empty database, and the kind of each page at which a
// table or an index begins, by page.
func newFirstPage(ctx context.Context) (page []byte, roots map[int64]byte, err error) {
	dir, err := os.MkdirTemp("", "convlog-page-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "empty.db")
	if err := createFile(path); err != nil {
		return nil, nil, err
	}
	c, err := dialWriter(ctx, path, Options{NoSync: true})
	if err != nil {
		return nil, nil, err
	}
	if err := c.close(); err != nil { // it copies the write-ahead log into the file
		return nil, nil, err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	roots = map[int64]byte{}
	for n := int64(1); n < int64(len(file))/firstPageBytes; n++ {
		roots[n] = file[n*firstPageBytes]
	}
	return file[:firstPageBytes], roots, nil
}

// isLeaf is the bit of a page of a tree that has no pages below it.
const isLeaf = 8

// copyWithPage copies a file, and puts a page in the place of the first one.
func copyWithPage(from, to string, page []byte, roots map[int64]byte) (copied bool, err error) {
	in, err := os.Open(from)
	if err != nil {
		return false, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || info.Size()/firstPageBytes <= int64(len(roots)) {
		return false, err
	}
	kind, fit := make([]byte, 1), 0
	for n, want := range roots {
		if _, err := in.ReadAt(kind, n*firstPageBytes); err != nil {
			return false, err
		}
		if kind[0]|isLeaf == want {
			fit++
		}
	}
	if 2*fit < len(roots) {
		return false, nil // others may be damaged too
	}
	binary.BigEndian.PutUint32(page[headerPages:], uint32(info.Size()/firstPageBytes))
	binary.BigEndian.PutUint64(page[headerFree:], 0)
	copy(page[headerValidFor:headerValidFor+4], page[headerChanges:])
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	if _, err = io.Copy(out, in); err == nil {
		_, err = out.WriteAt(page, 0)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return false, err
	}
	wal, err := os.ReadFile(from + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err == nil {
		err = os.WriteFile(to+"-wal", wal, 0o600)
	}
	return err == nil, err
}

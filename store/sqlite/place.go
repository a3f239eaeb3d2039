package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/sysfile"
)

// place identifies the database file, and the write-ahead log, that a store has open.
// SQLite goes on writing to a file that was moved or removed, and nobody finds the
// events there.
type place struct {
	path       string // absolute
	inode, wal uint64 // 0 if not known yet
}

// placeOf identifies the database at path.
func placeOf(path string) (place, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return place{}, err
	}
	p := place{path: absolute}
	p.inode, err = inodeAt(absolute)
	return p, err
}

// check returns ErrMoved if the database, or its write-ahead log, has another file now.
func (p *place) check() error {
	if err := same(p.path, p.inode); err != nil {
		return err
	}
	return same(p.path+"-wal", p.wal)
}

// opened records the write-ahead log once SQLite has it open. Then SQLite keeps the file.
func (p *place) opened() {
	if p.wal == 0 {
		p.wal, _ = inodeAt(p.path + "-wal") // check reports a missing file
	}
}

func same(path string, inode uint64) error {
	if inode == 0 {
		return nil
	}
	now, err := inodeAt(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && now != inode {
		return fmt.Errorf("%s: %w", path, eventlog.ErrMoved)
	}
	return nil // another error says nothing about the file that is open
}

func statInode(path string) (uint64, error) {
	info, err := sysfile.Stat(path)
	return info.Inode, err
}

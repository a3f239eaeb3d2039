package jsonl

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// spareFS is an FS that closes the files of idle sessions when the process has
// no descriptor left, and tries again.
type spareFS struct {
	FS
	cache *cache
}

func (s *spareFS) Open(name string, flag int) (file File, err error) {
	return file, s.retry(func() error {
		file, err = s.FS.Open(name, flag)
		return err
	})
}

func (s *spareFS) ReadDir(name string) (entries []fs.DirEntry, err error) {
	return entries, s.retry(func() error {
		entries, err = s.FS.ReadDir(name)
		return err
	})
}

func (s *spareFS) SyncDir(name string) error {
	return s.retry(func() error { return s.FS.SyncDir(name) })
}

func (s *spareFS) MakeRoot() error { return s.retry(s.FS.MakeRoot) }

func (s *spareFS) retry(open func() error) error {
	err := open()
	if exhausted(err) && s.cache.shed() {
		err = open()
	}
	return err
}

// exhausted reports that there was no descriptor left, of the process or of
// the system.
func exhausted(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE)
}

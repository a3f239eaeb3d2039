package jsonl

import (
	"errors"
	"io"
	"os"
	"path"
)

// readAll returns the content of a small file.
func (s *Store) readAll(name string) (b []byte, err error) {
	file, err := s.fs.Open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer closeInto(&err, file)
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	b = make([]byte, info.Size)
	n, err := readFull(file, b, 0)
	return b[:n], err
}

// replace writes b to the file name durably. A crash leaves the old content or b.
func (s *Store) replace(name string, b []byte) error {
	temp := name + tempSuffix
	if err := s.writeFile(temp, b); err != nil {
		_ = s.fs.Remove(temp)
		return err
	}
	if err := s.fs.Rename(temp, name); err != nil {
		return err
	}
	return s.fs.SyncDir(".")
}

func (s *Store) writeFile(name string, b []byte) (err error) {
	file, err := s.fs.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	if _, err := file.Write(b); err != nil {
		return err
	}
	return file.Sync()
}

// closeInto closes file and sets *err if closing fails and *err is nil.
func closeInto(err *error, file File) {
	if closing := file.Close(); *err == nil {
		*err = closing
	}
}

// readFull reads until b is full or the file ends. It returns no io.EOF.
func readFull(f io.ReaderAt, b []byte, at int64) (int, error) {
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func writeAll(to io.Writer, b []byte) error {
	n, err := to.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// removeNames removes the names in dir for which pick is true, and syncs dir.
func (s *Store) removeNames(dir string, names []string, pick func(name string) bool) error {
	var errs []error
	found := false
	for _, name := range names {
		if pick(name) {
			found = true
			errs = append(errs, s.fs.Remove(path.Join(dir, name)))
		}
	}
	if found {
		errs = append(errs, s.fs.SyncDir(dir))
	}
	return errors.Join(errs...)
}

package transfer

import (
	"errors"
	"io"
	"os"

	"github.com/convlog/convlog/event"
)

// tempFile is a file that Close removes. It has no name where the system allows that.
type tempFile struct{ *os.File }

func newTempFile() (*tempFile, error) {
	file, err := os.CreateTemp("", "convlog-import-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(file.Name()) // some systems remove no open file; then Close does
	return &tempFile{file}, nil
}

func (f *tempFile) Close() error {
	err := f.File.Close()
	if removed := os.Remove(f.Name()); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}

// spool keeps the blobs of an export until a line that needs them is stored.
type spool struct {
	file  *tempFile
	size  int64
	blobs map[event.Digest]section
}

// section is a blob's place in the file.
type section struct{ offset, bytes int64 }

func (s *spool) add(d event.Digest, body []byte) error {
	if s.file == nil {
		file, err := newTempFile()
		if err != nil {
			return err
		}
		s.file, s.blobs = file, map[event.Digest]section{}
	}
	if _, known := s.blobs[d]; known {
		return nil
	}
	if _, err := s.file.WriteAt(body, s.size); err != nil {
		return err
	}
	s.blobs[d] = section{s.size, int64(len(body))}
	s.size += int64(len(body))
	return nil
}

// open returns a reader of a blob, if the export has it.
func (s *spool) open(d event.Digest) (io.Reader, bool) {
	at, ok := s.blobs[d]
	if !ok {
		return nil, false
	}
	return io.NewSectionReader(s.file, at.offset, at.bytes), true
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

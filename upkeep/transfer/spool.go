package transfer

import (
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/folder"
)

// spool keeps the blobs of an export until a line that needs them is stored.
type spool struct {
	file  *folder.TempFile
	size  int64
	blobs map[event.Digest]section
}

// section is a blob's place in the file.
type section struct{ offset, bytes int64 }

func (s *spool) add(d event.Digest, body []byte) error {
	if s.file == nil {
		file, err := folder.Temp("", "convlog-import-")
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

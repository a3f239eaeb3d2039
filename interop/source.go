package interop

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// headBytes is the most that Source.Head reads.
const headBytes = 64 << 10

// MaxRecord is the longest line, or document over several lines, that an import reads, in
// bytes. Providers of models accept requests of 20 to 100 MB, so no transcript has a
// longer message. An import needs up to six times the memory of its longest record: the
// line, its texts, and the event made of it.
const MaxRecord = 256 << 20

// Source is a file to import.
type Source struct {
	// Name is the path or name, for origins and errors.
	Name string
	// Open opens the content at its start. It may be called several times.
	Open func() (io.ReadCloser, error)
	// Size limits how many bytes are read, so that an import reads a growing file
	// only up to the size that Find saw. 0 is no limit.
	Size int64
}

// File makes a source of a file, limited to the file's size now.
func File(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	return fileOf(path, info.Size()), nil
}

// fileOf makes a source of the first size bytes of a file.
func fileOf(path string, size int64) Source {
	return Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }, Size: size}
}

// Reader opens the source and reads at most Size bytes. The caller closes f.
func (s Source) Reader() (r io.Reader, f io.Closer, err error) {
	if s.Open == nil {
		return nil, nil, fmt.Errorf("source %q has no Open function", s.Name)
	}
	file, err := s.Open()
	if err != nil {
		return nil, nil, err
	}
	if s.Size > 0 {
		return io.LimitReader(file, s.Size), file, nil
	}
	return file, file, nil
}

// Head reads the first 64 KiB of the source.
func (s Source) Head() ([]byte, error) {
	r, f, err := s.Reader()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int64(headBytes)
	if s.Size > 0 {
		size = min(s.Size, size)
	}
	// The free bytes let ReadFrom see the end without growing the buffer.
	head := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = head.ReadFrom(io.LimitReader(r, headBytes))
	return head.Bytes(), err
}

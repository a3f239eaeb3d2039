// Package interop reads the transcripts that other programs leave behind into
// a log. Each foreign format is a small package below it that implements
// Format; what they share stands here: walking folders, splitting files into
// records, ids that make a second import add nothing, and the table that an
// import ends with.
//
// An importer loses nothing silently: a record that has no event of its own is
// kept raw, in an event of type "<format>:<record type>", and a record that
// cannot be read is refused with its line and offset.
package interop

import (
	"context"
	"io"
	"os"

	"github.com/convlog/convlog/eventlog"
)

// Format reads one foreign format.
type Format interface {
	// Name is the format's short name, which also begins the types of events
	// that hold raw records.
	Name() string
	// Detect reports whether a file is of the format, by its name and its first
	// bytes (up to HeadBytes; the last line may be cut).
	Detect(name string, head []byte) bool
	// Import appends to the log what the source holds and the log does not
	// have yet. Records that cannot be read are refused in the Result, and
	// the rest is imported; an error says that the import stopped. The Result
	// is valid in either case. Importing again, or a longer version of the
	// source, continues.
	Import(ctx context.Context, log *eventlog.Log, src Source) (Result, error)
}

// Ranker is implemented by a Format whose files depend on each other: files
// of lower rank are imported first. It is given what Detect is given.
type Ranker interface {
	Rank(name string, head []byte) int
}

// Laner is implemented by a Format whose files may hold the same session. Files
// of one lane are imported one after the other, by path; "" is no lane.
type Laner interface {
	Lane(head []byte) string
}

// Gatherer is implemented by a Format that keeps a session in many files, one of
// which stands for all: that one is imported, with the others.
type Gatherer interface {
	// Gathered is the file that stands for a file; "" or the file itself if it
	// stands alone. It is given what Detect is given.
	Gathered(name string, head []byte) string
}

// HeadBytes is how much of a file Detect sees at most.
const HeadBytes = 64 << 10

// Source is a file to import.
type Source struct {
	// Name is the path or name, for origins and errors.
	Name string
	// Open opens the content, from its start.
	Open func() (io.ReadCloser, error)
	// Size bounds how many bytes are read, so that a file that grows meanwhile
	// is read as it was when it was found; no bound if 0.
	Size int64
}

// File makes a source of a file as long as it is now.
func File(path string) (Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Source{}, err
	}
	return Source{
		Name: path,
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
		Size: info.Size(),
	}, nil
}

// reader opens the source, bounded by its size.
func (s Source) reader() (io.Reader, io.Closer, error) {
	f, err := s.Open()
	if err != nil {
		return nil, nil, err
	}
	if s.Size > 0 {
		return io.LimitReader(f, s.Size), f, nil
	}
	return f, f, nil
}

// head reads the first bytes of the source, for Detect.
func (s Source) head() ([]byte, error) {
	r, f, err := s.reader()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(r, HeadBytes))
}

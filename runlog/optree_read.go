package runlog

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// OpTreeError reports an op tree file that is truncated, damaged, or no op tree file.
// Write it again from the log.
type OpTreeError struct {
	// Path is the path of the file, if it is known.
	Path  string
	Cause error
}

func (e *OpTreeError) Error() string {
	if e.Path == "" {
		return "op tree file: " + e.Cause.Error()
	}
	return fmt.Sprintf("op tree file %s: %v", e.Path, e.Cause)
}

func (e *OpTreeError) Unwrap() error { return e.Cause }

// maxOpTree is the length of the longest op tree file that is read, without compression.
const maxOpTree = 256 << 20

var (
	errLongOpTree = fmt.Errorf("it has more than %d bytes", maxOpTree)
	errNoOpTree   = errors.New("it has no session")
)

// ReadOpTree reads an op tree file that OpTreeFile.Write, OpTreeFile.WriteJSON or a sink.OpTreeFolder wrote, with
// compression or without. It reads files of at most 256 MiB, uncompressed. The error is
// an *OpTreeError.
func ReadOpTree(r io.Reader) (*OpTreeFile, error) {
	f, err := readOpTree(r)
	if err != nil {
		return nil, &OpTreeError{Cause: err}
	}
	return f, nil
}

func readOpTree(r io.Reader) (*OpTreeFile, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: the reader", event.ErrNilArgument)
	}
	in := bufio.NewReader(r)
	r = in
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		r = z
	}
	var f OpTreeFile
	if err := json.UnmarshalRead(&limited{r: r, left: maxOpTree}, &f); err != nil {
		return nil, err
	}
	for _, version := range []int{f.Version, f.Snapshot.Version} {
		if version > opTreeVersion {
			return nil, &event.VersionError{What: "op tree", Got: version, Max: opTreeVersion}
		}
	}
	if f.SessionID == "" || f.Snapshot.OpTree.ID != f.SessionID {
		return nil, errNoOpTree
	}
	return &f, nil
}

// limited is a reader with an error after a limit.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if l.left -= n; l.left < 0 {
		return 0, errLongOpTree
	}
	return n, err
}

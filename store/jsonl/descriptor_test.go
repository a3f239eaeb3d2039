package jsonl

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// limitedFS is an FS with a limited number of file descriptors.
type limitedFS struct {
	FS
	left atomic.Int32
}

type limitedFile struct {
	File
	fs *limitedFS
}

func (s *limitedFS) Open(name string, flag int) (File, error) {
	if s.left.Add(-1) < 0 {
		s.left.Add(1)
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.EMFILE}
	}
	file, err := s.FS.Open(name, flag)
	if err != nil {
		s.left.Add(1)
		return nil, err
	}
	return &limitedFile{file, s}, nil
}

func (f *limitedFile) Close() error {
	f.fs.left.Add(1)
	return f.File.Close()
}

// When no descriptor is left, the store closes the files of idle sessions.
func TestFewDescriptors(t *testing.T) {
	dir := t.TempDir()
	few := &limitedFS{FS: newFaults(dir)}
	few.left.Store(5)
	log := eventlog.Open(New(dir, Options{FS: few}))
	defer log.Close()
	for i := range 60 {
		if _, err := log.Append(t.Context(), fmt.Sprint("s", i%30), eventlog.Any(), note("x")); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
	}
	for i := range 30 {
		wantSeqs(t, log.Store().(*Store), fmt.Sprint("s", i), eventlog.Span{}, 1, 2)
	}
}

//go:build unix

package sqlite

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/witness"
)

// fullDisk is the variable with the path for the process on the full disk.
const fullDisk = "CONVLOG_TEST_FULL_DISK"

// fillDisk lets no file of this process grow over 16 KiB.
func fillDisk(t *testing.T) {
	t.Helper()
	signal.Ignore(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 16 << 10, Max: 16 << 10}))
}

// A killed writer left a write-ahead log without an index, and the disk has no room for
// the index. A read-only store reads all events, in several reads at a time.
func TestReadOnFullDisk(t *testing.T) {
	if path := os.Getenv(fullDisk); path != "" {
		readOnFullDisk(t, path)
		return
	}
	file, wal := crashedFiles(t)
	path := filepath.Join(t.TempDir(), "s.db")
	must(t, errors.Join(os.WriteFile(path, file, 0o600), os.WriteFile(path+"-wal", wal, 0o600)))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReadOnFullDisk$")
	child.Env = append(os.Environ(), fullDisk+"="+path)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func readOnFullDisk(t *testing.T, path string) {
	fillDisk(t)
	_, err := dialReadable(path, "mode=ro", "")
	if !isCode(err, codeIndexSize) {
		t.Fatalf("the test does not fill the disk: %v", err)
	}
	s := open(t, path, Options{ReadOnly: true})
	counts := make(chan int)
	for range 4 {
		go func() {
			events, err := collect(s.Read(t.Context(), witness.Main, eventlog.Span{}))
			if err != nil {
				t.Error(err)
			}
			counts <- len(events)
		}()
	}
	for range 4 {
		if n := <-counts; n < 15 {
			t.Errorf("read %d events", n)
		}
	}
}

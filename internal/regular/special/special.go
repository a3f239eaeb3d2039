// Package special makes files that are no regular files, for tests.
package special

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Kind makes one kind of special file at a path.
type Kind struct {
	Name string
	Make func(t testing.TB, path string)
}

// Kinds returns all kinds that need no privileges.
func Kinds() []Kind {
	return []Kind{
		{"named pipe", func(t testing.TB, path string) { must(t, unix.Mkfifo(path, 0o600)) }},
		{"socket", listen},
		{"folder", func(t testing.TB, path string) { must(t, os.Mkdir(path, 0o700)) }},
		{"link to itself", func(t testing.TB, path string) { must(t, os.Symlink(filepath.Base(path), path)) }},
		{"link to nothing", func(t testing.TB, path string) { must(t, os.Symlink("missing", path)) }},
		{"link to a device", func(t testing.TB, path string) { must(t, os.Symlink("/dev/zero", path)) }},
	}
}

// listen makes a socket. Its path may be longer than the address of a socket, so the
// socket gets its name by a rename.
func listen(t testing.TB, path string) {
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	must(t, os.Rename(filepath.Join(dir, "s"), path))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

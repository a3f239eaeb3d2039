//go:build unix

package special

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// systemKinds returns the kinds that only Unix has in a folder.
func systemKinds() []Kind {
	return []Kind{
		{"named pipe", func(t testing.TB, path string) { must(t, unix.Mkfifo(path, 0o600)) }},
		{"socket", listen},
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

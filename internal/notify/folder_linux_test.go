package notify

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// WatchFolder reports each kind of change, and the end of the folder.
func TestWatchFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	reported := make(chan string, 100)
	stop, ok := WatchFolder(folder, func(name string) { reported <- name })
	if !ok {
		t.Fatal("the system gives no reports")
	}
	defer stop()
	want := func(name string) {
		t.Helper()
		for got := range reported {
			if got == name {
				return
			}
		}
	}
	path := filepath.Join(folder, "a file")
	change := func(err error, names ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			want(name)
		}
	}
	file, err := os.Create(path)
	change(err, "a file")
	_, err = file.WriteString("x")
	change(err, "a file")
	change(file.Truncate(0), "a file")
	change(errors.Join(file.Close(), os.Rename(path, filepath.Join(folder, "b"))), "a file", "b")
	change(os.Remove(filepath.Join(folder, "b")), "b")
	change(os.Rename(folder, folder+".old"), "")
	if _, ok := WatchFolder(folder, func(string) {}); ok {
		t.Error("a missing folder is watched")
	}
}

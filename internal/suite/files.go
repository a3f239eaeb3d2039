package suite

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/convlog/convlog/event"
)

// Files lists all files and folders next to the harness's path.
func (t *Env) Files() []string {
	t.Helper()
	if t.Harness.Path == "" {
		return nil
	}
	parent := filepath.Dir(t.Harness.Path)
	var names []string
	t.Must(filepath.WalkDir(parent, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(parent, path)
		names = append(names, name)
		return err
	}))
	return names
}

// Contents returns the digests of all files next to the harness's path.
func (t *Env) Contents() (digests []event.Digest) {
	t.Helper()
	t.eachFile(func(_ string, body []byte) { digests = append(digests, event.DigestOf(body)) })
	return digests
}

// eachFile passes all files next to the harness's path to fn.
func (t *Env) eachFile(fn func(name string, body []byte)) {
	t.Helper()
	for _, name := range t.Files() {
		path := filepath.Join(filepath.Dir(t.Harness.Path), name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			t.Must(err)
			continue
		}
		body, err := os.ReadFile(path)
		t.Must(err)
		fn(name, body)
	}
}

// WantNoOtherFiles checks that the store wrote no files outside the harness's path.
func (t *Env) WantNoOtherFiles() {
	t.Helper()
	base := ""
	if t.Harness.Path != "" {
		base = filepath.Base(t.Harness.Path)
	}
	for _, name := range t.Files() {
		if name != "." && !strings.HasPrefix(name, base) {
			t.Errorf("the store wrote a file outside its path: %q", name)
		}
	}
}

// WantNoOpenFiles checks that this process has no open file of the store. It finds
// nothing on systems without /proc.
func (t *Env) WantNoOpenFiles() {
	t.Helper()
	if t.Harness.Path == "" {
		return
	}
	const descriptors = "/proc/self/fd"
	entries, _ := os.ReadDir(descriptors)
	for _, entry := range entries {
		// The descriptor of this listing is closed by now.
		if target, err := os.Readlink(filepath.Join(descriptors, entry.Name())); err == nil && strings.HasPrefix(target, t.Harness.Path) {
			t.Errorf("a file is open: %s", target)
		}
	}
}

package jsonl

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// Check finds entries that Sessions does not list.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	b := content(sealed(t, "a", 1))
	write(t, dir, "a", b)
	write(t, dir, "torn", b[:50])
	write(t, dir, "empty", nil)
	must(t, os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700))
	must(t, os.Symlink("a.jsonl", filepath.Join(dir, "link.jsonl")))
	found := map[string]eventlog.Defect{}
	for d, err := range open(t, dir).Check(t.Context()) {
		must(t, err)
		found[filepath.Base(d.Path)] = d
	}
	if len(found) != 3 || found["folder.jsonl"].Rule != "file" || found["link.jsonl"].Rule != "file" ||
		found["torn.jsonl"].Rule != "unlisted" || found["torn.jsonl"].Session != "torn" {
		t.Errorf("found %v", found)
	}
	for d, err := range New(filepath.Join(dir, "none")).Check(t.Context()) {
		t.Errorf("found %v, %v in an empty directory", d, err)
	}
}

package sink_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/sink"
)

// The files that name a session are its own, files of sessions above it, and the rests of
// killed writers.
func TestOpTreesThatNameASession(t *testing.T) {
	dir := sink.OpTreeFolder(filepath.Join(t.TempDir(), "trees"))
	if paths, err := dir.Naming("a"); err != nil || len(paths) > 0 {
		t.Errorf("a missing folder: %q, %v", paths, err)
	}
	parent := treeOf("parent", "final")
	tree := &parent.Snapshot.OpTree
	tree.Turns = append(tree.Turns, runlog.OpTreeTurn{Ops: []runlog.OpTreeOp{{ChildSessions: []runlog.OpTreeSession{{ID: "a/1"}}}}})
	for _, tree := range []*runlog.OpTreeFile{treeOf("a/1", "final"), treeOf("a/10", "final"), parent, treeOf("b", "final")} {
		if err := dir.Write(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
	}
	rest := dir.Path("a/1") + ".tmp"
	if err := os.WriteFile(rest, []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	paths, err := dir.Naming("a/1")
	want := []string{dir.Path("a/1"), rest, dir.Path("parent")}
	slices.Sort(want)
	if err != nil || !slices.Equal(paths, want) {
		t.Errorf("%q, %v", paths, err)
	}
	if err := os.WriteFile(dir.Path("b"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := dir.Naming("a/1"); err == nil || !slices.Equal(again, want) {
		t.Errorf("with a damaged file: %q, %v", again, err)
	}
	if err := dir.Remove(paths...); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(string(dir)); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}

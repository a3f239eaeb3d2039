package sink_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/regular/special"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/sink"
)

func encoded(t garden.Failer, v any) string {
	t.Helper()
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(text)
}

// The op tree of any session can be read back from its file, compressed or plain.
func TestOpTreesComeBack(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		dir := sink.OpTreeFolder(t.TempDir())
		for _, name := range l.Names {
			run, err := runlog.Load(garden.Bg, l.Log, name)
			l.Allow(err)
			want := run.OpTreeFile(runlog.OpTreeOptions{Reason: "final", OriginID: "root"})
			l.Allow(dir.Write(garden.Bg, want))
			got, err := dir.Read(name)
			l.Allow(err)
			garden.Same(r, "file of "+name, encoded(r, want), encoded(r, got))

			var plain bytes.Buffer
			l.Allow(run.OpTreeFile().WriteJSON(&plain))
			got, err = runlog.ReadOpTree(&plain)
			l.Allow(err)
			garden.Same(r, "plain file of "+name, encoded(r, want.Snapshot), encoded(r, got.Snapshot))
		}
	})
}

// treeOf is the smallest op tree of a session.
func treeOf(session, reason string) *runlog.OpTreeFile {
	return (&runlog.Run{Session: session}).OpTreeFile(runlog.OpTreeOptions{Reason: reason})
}

// Every session has a file of its own, whatever its id.
func TestOpTreesHaveSeparateFiles(t *testing.T) {
	dir := sink.OpTreeFolder(t.TempDir())
	ids := []string{"a", "A", "a/b", "../a", ".", "..", "é", "É", "a.json.gz", "a.json.gz.tmp", strings.Repeat("x", 200), strings.Repeat("x", 199), "%41"}
	for _, id := range ids {
		if err := dir.Write(garden.Bg, treeOf(id, id)); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		if f, err := dir.Read(id); err != nil || f.Reason != id {
			t.Errorf("%q: %v, %v", id, f, err)
		}
	}
	entries, err := os.ReadDir(string(dir))
	if err != nil || len(entries) != len(ids) {
		t.Errorf("%d files of %d sessions: %v", len(entries), len(ids), err)
	}
}

// A killed writer leaves a part of a temporary file.
func TestAnInterruptedOpTree(t *testing.T) {
	dir := sink.OpTreeFolder(t.TempDir())
	first, second := treeOf("s", "first"), treeOf("s", "second")
	if err := dir.Write(garden.Bg, first); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Path("s")+".tmp", bytes.Repeat([]byte("x"), 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(garden.Bg)
	cancel()
	if err := dir.Write(ended, second); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if f, err := dir.Read("s"); err != nil || f.Reason != "first" {
		t.Errorf("%v, %v", f, err)
	}
	if err := dir.Write(garden.Bg, second); err != nil {
		t.Fatal(err)
	}
	if f, err := dir.Read("s"); err != nil || f.Reason != "second" {
		t.Errorf("%v, %v", f, err)
	}
}

// badTree wants an *OpTreeError of the file of "s".
func badTree(t *testing.T, dir sink.OpTreeFolder, what string) error {
	t.Helper()
	f, err := dir.Read("s")
	var bad *runlog.OpTreeError
	if !errors.As(err, &bad) || bad.Path != dir.Path("s") || !strings.Contains(err.Error(), bad.Path) {
		t.Errorf("%s: %+v, %v", what, f, err)
	}
	return err
}

func TestTornOpTrees(t *testing.T) {
	dir := sink.OpTreeFolder(t.TempDir())
	if err := dir.Write(garden.Bg, treeOf("s", "final")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(dir.Path("s"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		if err := os.WriteFile(dir.Path("s"), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		_ = badTree(t, dir, "truncated")
	}
}

func TestHostileOpTrees(t *testing.T) {
	dir := sink.OpTreeFolder(t.TempDir())
	good := encoded(t, treeOf("s", "final"))
	for what, text := range map[string]string{
		"empty": "", "text": "hello", "null": "null", "array": "[]", "an object": "{}",
		"NULs": strings.Repeat("\x00", 1000), "two values": good + good, "a duplicate name": strings.Replace(good, "{", `{"version":1,`, 1),
		"another session": encoded(t, treeOf("other", "final")),
		"another tree":    strings.Replace(good, `"id":"s"`, `"id":"x"`, 1),
		"nested":          strings.Repeat(`{"snapshot":{"opTree":{"turns":[{"ops":[{"childSessions":[`, 5000),
	} {
		for _, compressed := range []bool{false, true} {
			writeTree(t, dir, compressed, strings.NewReader(text))
			_ = badTree(t, dir, what)
		}
	}
	writeTree(t, dir, true, strings.NewReader(strings.Replace(good, `"version":1`, `"version":2`, 1)))
	var version *event.VersionError
	if err := badTree(t, dir, "a newer version"); !errors.As(err, &version) || version.Got != 2 || version.Max != 1 {
		t.Errorf("got %v", err)
	}
	bomb := slices.Concat(compressed(t, `{"reason":"`), bytes.Repeat(compressed(t, strings.Repeat("x", 1<<20)), 300), compressed(t, `"}`))
	writeTree(t, dir, false, bytes.NewReader(bomb))
	if err := badTree(t, dir, "a bomb"); !strings.Contains(err.Error(), "more than") {
		t.Errorf("got %v", err)
	}
}

func writeTree(t *testing.T, dir sink.OpTreeFolder, compressed bool, content io.Reader) {
	t.Helper()
	f, err := os.Create(dir.Path("s"))
	if err != nil {
		t.Fatal(err)
	}
	var w io.WriteCloser = f
	if compressed {
		w = gzip.NewWriter(f)
	}
	_, err = io.Copy(w, content)
	if err = errors.Join(err, w.Close()); compressed {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// compressed returns a part of a file of gzip.
func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestOpTreesThatAreNoFiles(t *testing.T) {
	for _, kind := range special.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			dir := sink.OpTreeFolder(t.TempDir())
			kind.Make(t, dir.Path("s"))
			if _, err := dir.Read("s"); err == nil || errors.Is(err, fs.ErrNotExist) && kind.Name != "link to nothing" {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := sink.OpTreeFolder(filepath.Join(os.DevNull, "x")).Write(garden.Bg, treeOf("s", "final")); err == nil {
		t.Error("a folder where none can be")
	}
}

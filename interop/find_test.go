package interop_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func below(dir string, paths []string) []string {
	var names []string
	for _, path := range paths {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			name = path
		}
		names = append(names, name)
	}
	return names
}

func candidates(f *interop.Found) (paths []string) {
	for _, file := range f.Files() {
		paths = append(paths, file.Path)
	}
	return paths
}

// A link that is named is followed, one in a folder is listed, so that no link
// leads out of a folder or round in circles.
func TestFindFollowsLinksThatAreNamed(t *testing.T) {
	dir := files(t, map[string]string{"a/x": "one", "b/y": "one"})
	link(t, filepath.Join(dir, "b"), filepath.Join(dir, "a", "other"))
	link(t, filepath.Join(dir, "a"), filepath.Join(dir, "a", "round"))
	link(t, filepath.Join(dir, "a"), filepath.Join(dir, "folder"))
	link(t, filepath.Join(dir, "b", "y"), filepath.Join(dir, "file"))
	formats := []interop.Format{fake{name: "one"}}
	paths := []string{filepath.Join(dir, "folder"), filepath.Join(dir, "file")}
	found, err := interop.Find(t.Context(), formats, paths)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"file", "folder/x"}, below(dir, candidates(found))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"folder/other", "folder/round"}, below(dir, found.Links)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if found.Bytes() != 6 {
		t.Errorf("%d bytes, want 6", found.Bytes())
	}
}

// one is a format in which a file x is imported for the files in a folder "more" beside it.
type one struct{ fake }

func (one) Gathered(name string, _ []byte) string {
	if filepath.Base(filepath.Dir(name)) == "more" {
		return filepath.Join(filepath.Dir(filepath.Dir(name)), "x")
	}
	return ""
}

// Find finds the file that represents a file, once, wherever it is. A missing
// representative is an error.
func TestFindTakesWhatStandsForAFile(t *testing.T) {
	dir := files(t, map[string]string{"a/x": "one", "a/more/y": "one", "a/more/z": "one", "a/more/notes.txt": "-", "b/more/y": "one"})
	formats := []interop.Format{one{fake{name: "one"}}}
	for _, paths := range [][]string{{"a"}, {"a/more"}, {"a/more/y", "a/more/z"}, {"a/x", "a/more/y"}} {
		for i, path := range paths {
			paths[i] = filepath.Join(dir, path)
		}
		found, err := interop.Find(t.Context(), formats, paths)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a/x"}, below(dir, candidates(found))); diff != "" {
			t.Errorf("%q: files (-want +got):\n%s", paths, diff)
		}
		if len(found.Skipped) > 1 || len(found.Unread) > 0 {
			t.Errorf("skipped %q, unread %v", found.Skipped, found.Unread)
		}
	}
	found, err := interop.Find(t.Context(), formats, []string{filepath.Join(dir, "b")})
	if err != nil || len(found.Unread) != 1 || !errors.Is(found.Unread[0].Err, fs.ErrNotExist) {
		t.Errorf("the file that represents it is missing: %+v, %v", found, err)
	}
	_, err = interop.Find(t.Context(), formats, []string{filepath.Join(dir, "b", "more", "y")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file is named, and the file that represents it is missing: %v", err)
	}
}

// A file that was only matched may be of no format, and may be missing.
func TestFindTakesWhatIsMatched(t *testing.T) {
	dir := files(t, map[string]string{"a": "one", "notes.txt": "-"})
	link(t, "nowhere", filepath.Join(dir, "dangling"))
	log := eventlog.Open(memory.New())
	defer log.Close()
	opts := interop.Options{Matched: []string{filepath.Join(dir, "a"), filepath.Join(dir, "dangling"), filepath.Join(dir, "notes.txt")}}
	table, err := interop.Import(t.Context(), log, []interop.Format{fake{name: "one", imported: new(journal)}}, nil, opts)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "dangling: no such file") {
		t.Errorf("error is %v", err)
	}
	if len(table.Rows) != 2 || table.Rows[0].Records != 2 || table.Rows[1].Err == nil {
		t.Errorf("rows are %+v", table.Rows)
	}
	if diff := cmp.Diff([]string{"notes.txt"}, below(dir, table.Skipped)); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

// Forced reads a named file that no format detects. An empty file is still of no
// format.
func TestFindForced(t *testing.T) {
	dir := files(t, map[string]string{"a": "eno", "empty": "\n"})
	formats := []interop.Format{fake{name: "one"}}
	forced := interop.Options{Forced: true}
	found, err := interop.Find(t.Context(), formats, []string{filepath.Join(dir, "a")}, forced)
	if err != nil || len(found.Files()) != 1 || found.Files()[0].Format != "one" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := interop.Find(t.Context(), formats, []string{filepath.Join(dir, "empty")}, forced); !errors.As(err, new(*interop.FormatError)) {
		t.Errorf("an empty file gives %v", err)
	}
	found, err = interop.Find(t.Context(), formats, []string{dir}, forced)
	if err != nil || len(found.Files()) != 0 || len(found.Skipped) != 2 {
		t.Errorf("in a folder found %+v, %v", found, err)
	}
}

func TestFindSaysWhatIsNoTranscript(t *testing.T) {
	tests := map[string]string{
		"":                       "it is empty",
		"\n \r\n":                "it is empty",
		"\x1f\x8b\x08\x00":       "it is compressed, unpack it first",
		"PK\x03\x04more":         "it is compressed, unpack it first",
		"SQLite format 3\x00...": "it is a SQLite database",
		"\xff\xfe{\x00":          "its text is UTF-16, write it as UTF-8",
		"\x7fELF\x02\x00":        "it is binary",
		"dear diary":             "",
	}
	for content, want := range tests {
		path := filepath.Join(files(t, map[string]string{"f": content}), "f")
		_, err := interop.Find(t.Context(), nil, []string{path})
		var format *interop.FormatError
		if !errors.As(err, &format) || format.Reason != want || format.Database != strings.Contains(want, "SQLite") || !strings.HasPrefix(err.Error(), path+": not a transcript of a known format") {
			t.Errorf("%q gives %v, want %q", content, err, want)
		}
	}
}

// twice is a format that reads its files twice.
type twice struct{}

func (twice) Name() string               { return "twice" }
func (twice) Detect(string, []byte) bool { return true }
func (twice) Import(_ context.Context, _ *eventlog.Log, src interop.Source) (r interop.Result, err error) {
	for range 2 {
		f, err := src.Open()
		if err != nil {
			return r, err
		}
		_, err = io.Copy(io.Discard, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return r, err
		}
	}
	return r, nil
}

func TestBytesAreCountedOnce(t *testing.T) {
	dir := files(t, map[string]string{"a": strings.Repeat("x", 100_000), "b": "y"})
	log := eventlog.Open(memory.New())
	defer log.Close()
	var read atomic.Int64
	opts := interop.Options{Bytes: func(n int64) { read.Add(n) }}
	if _, err := interop.Import(t.Context(), log, []interop.Format{twice{}}, []string{dir}, opts); err != nil {
		t.Fatal(err)
	}
	if read.Load() != 100_001 {
		t.Errorf("%d bytes were counted", read.Load())
	}
}

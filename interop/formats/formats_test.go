package formats_test

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/interop/lists"
)

// others returns all formats except lists of messages.
func others() []interop.Format {
	all := formats.All()
	return all[:len(all)-1]
}

// named returns the format with a name.
func named(t *testing.T, name string) interop.Format {
	t.Helper()
	all := formats.All()
	i := slices.IndexFunc(all, func(f interop.Format) bool { return f.Name() == name })
	if i < 0 {
		t.Fatalf("no format is named %q", name)
	}
	return all[i]
}

func TestEachFormatHasItsOwnName(t *testing.T) {
	for i, f := range formats.All() {
		if f.Name() == "" || named(t, f.Name()) != formats.All()[i] {
			t.Errorf("%T and another format are named %q", f, f.Name())
		}
	}
	if last := formats.All()[len(others())]; last != (lists.Format{}) {
		t.Errorf("the last is %T", last)
	}
}

// The format of its folder detects a transcript. No other format does, however short
// the head is.
func TestTranscriptsHaveOneFormat(t *testing.T) {
	root := filepath.Join("..", "..", "testdata", "transcripts")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		src, err := interop.File(path)
		if err != nil {
			return err
		}
		head, err := src.Head()
		if err != nil {
			return err
		}
		home, _, _ := strings.Cut(strings.TrimPrefix(path, root+string(filepath.Separator)), string(filepath.Separator))
		for cut := len(head); cut > 0; cut -= 1 + cut/20 {
			for _, f := range others() {
				if f.Detect(path, head[:cut]) && f.Name() != home && home != "samples" {
					t.Errorf("%s, cut off at %d, is of the format %s", path, cut, f.Name())
				}
			}
		}
		for _, f := range others() {
			if f.Name() == home && !f.Detect(path, head) {
				t.Errorf("%s is not of the format %s", path, home)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A list of messages is detected by no other format.
func TestListsHaveNoOtherFormat(t *testing.T) {
	for _, text := range []string{
		`[{"role":"user","content":"Hello"}]`, `{"messages":[{"role":"user","content":"Hello"}]}`, `{"role":"user","content":"Hello"}`,
		`{"id":"c1","title":"t","messages":[{"id":"m","role":"user","content":"Hello","source":"input"}],"info":{"id":"c1"}}`,
	} {
		if !(lists.Format{}).Detect("f.json", []byte(text)) {
			t.Errorf("%s is no list", text)
		}
		for _, f := range others() {
			if f.Detect("f.json", []byte(text)) {
				t.Errorf("%s is of the format %s", text, f.Name())
			}
		}
	}
}

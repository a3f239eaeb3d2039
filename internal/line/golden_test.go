package line

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
)

// goldenLines returns the lines of each golden log.
func goldenLines(t testing.TB) map[string][][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../testdata/golden/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d golden logs: %v", len(paths), err)
	}
	logs := map[string][][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		logs[path] = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	}
	return logs
}

// Every golden line follows from the previous line, and renders to the same bytes.
func TestGoldensRenderTheSame(t *testing.T) {
	for path, lines := range goldenLines(t) {
		var prev Hash
		for i, text := range lines {
			l := parse(t, text)
			if i == 0 && l.Type == "session_forked" {
				var fork struct {
					Hash string `json:"hash"`
				}
				if err := json.Unmarshal(l.Data, &fork); err != nil {
					t.Fatal(err)
				}
				prev, _ = ParseHash(fork.Hash)
			}
			if !l.Follows(prev) {
				t.Errorf("%s line %d: hash does not follow from %x", path, i+1, prev)
			}
			if again := l.Reseal(prev); !bytes.Equal(again, text) {
				t.Errorf("%s line %d: rendered again it is\n%s\nnot\n%s", path, i+1, again, text)
			}
			prev = l.Hash()
		}
	}
}

package eventlog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestGoldensSealTheSame takes every golden line apart and seals it anew.
func TestGoldensSealTheSame(t *testing.T) {
	paths, err := filepath.Glob("../testdata/golden/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d golden logs: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var prev Hash
		for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
			e, err := ParseLine(line, "")
			if err != nil {
				t.Errorf("%s line %d: %v", path, i+1, err)
				break
			}
			if f, ok, err := e.Fork(); ok && i == 0 {
				if err != nil {
					t.Fatal(err)
				}
				prev = f.Hash
			}
			if !e.chainsFrom(prev) {
				t.Errorf("%s line %d: hash does not follow from %v", path, i+1, prev)
			}
			if fresh := reseal(t, e, prev); !bytes.Equal(fresh, line) {
				t.Errorf("%s line %d: sealed anew it is\n%s\nnot\n%s", path, i+1, fresh, line)
			}
			prev = e.Hash()
		}
	}
}

// reseal renders the fields of a parsed event, with the salt it had.
func reseal(t *testing.T, e Event, prev Hash) []byte {
	t.Helper()
	if e.Redacted() {
		line := e.appendHeader([]byte(`{"crc":"00000000",`))
		line = fmt.Appendf(line, `,"hash":"%s","commit":"%s","kept":%s}`, e.Hash(), e.commit(), e.Kept())
		finish(line)
		return line
	}
	var salt [16]byte
	at := bytes.Index(e.line, []byte(`,"salt":"`)) + len(`,"salt":"`)
	if _, err := hex.Decode(salt[:], e.line[at:at+32]); err != nil {
		t.Fatal(err)
	}
	e.line, e.off = nil, offsets{}
	return e.seal(nil, prev, salt)
}

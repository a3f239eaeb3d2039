package event

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/internal/line"
)

// goldenLines are the lines of all golden logs.
func goldenLines(t testing.TB) (lines [][]byte) {
	t.Helper()
	paths, err := filepath.Glob("../testdata/golden/*.jsonl")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d golden logs: %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))...)
	}
	return lines
}

// A clone of a golden event does not change with the bytes that the event was read from,
// and clones in one buffer do not overwrite each other.
func TestCloneSharesNoBytes(t *testing.T) {
	lines := goldenLines(t)
	var shared []byte
	var clones [][2]Event
	for _, text := range lines {
		buffer := bytes.Clone(text)
		e, err := Parse(buffer, "")
		if err != nil {
			t.Fatal(err)
		}
		var c Event
		c, shared = e.CloneTo(shared)
		clones = append(clones, [2]Event{e.Clone(), c})
		clear(buffer)
	}
	for i, text := range lines {
		want, err := Parse(text, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range clones[i] {
			if diff := cmp.Diff(want, c, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Fatalf("the clone of %s (-want +got):\n%s", text, diff)
			}
		}
	}
}

// A golden event is the line it was read from, and keeps its rules.
func TestParseGoldens(t *testing.T) {
	for _, text := range goldenLines(t) {
		e, err := Parse(text, "")
		if err != nil || !bytes.Equal(e.Line(), text) {
			t.Fatalf("%v: %s", err, text)
		}
		if _, _, spilled := e.Spilled(); spilled || e.Redacted() {
			continue
		}
		if _, err := e.Check(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	good := string(goldenLines(t)[0])
	for name, c := range map[string]struct {
		line, session string
		want          error
	}{
		"foreign":         {`{"type":"user"}`, "", ErrForeign},
		"newer envelope":  {strings.Replace(good, `"v":1`, `"v":2`, 1), "", ErrVersion},
		"wrong crc":       {`{"crc":"00000000"` + good[len(`{"crc":"00000000"`):], "", line.ErrCRC},
		"another session": {good, "another", line.ErrSession},
	} {
		if _, err := Parse([]byte(c.line), c.session); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	if _, err := Parse([]byte("hello"), ""); err == nil || errors.Is(err, ErrForeign) {
		t.Errorf("no JSON: %v", err)
	}
}

// No reader of a line panics, with any bytes.
func FuzzParse(f *testing.F) {
	for _, text := range goldenLines(f) {
		if len(text) < 4096 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse(text, "")
		if err != nil {
			return
		}
		if again, err := Parse(e.Line(), e.SessionID); err != nil || again.Hash() != e.Hash() || !bytes.Equal(again.Line(), e.Line()) {
			t.Fatalf("read again: %v\n%s", err, e.Line())
		}
		for _, decode := range decoders {
			_, _, _ = decode(&e)
		}
		_, _ = e.Check()
		_, _, _ = OutlineOf(&e)
		_, _ = e.Parent()
		_ = e.Effective()
		if !e.Redacted() && e.Data != nil {
			_, _ = e.Structure()
		}
	})
}

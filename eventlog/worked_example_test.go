//go:build !js

package eventlog_test

import (
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/testkit"
)

const (
	formatPage   = "../docs/FORMAT.md"
	exampleStart = "The first line of `testdata/golden/basic.jsonl`:\n\n"
	exampleEnd   = "\n## 3. "
)

// TestWorkedExample keeps the worked example of docs/FORMAT.md true.
func TestWorkedExample(t *testing.T) {
	line, _, _ := strings.Cut(testkit.ReadFile(t, filepath.Join(goldens, "basic.jsonl")), "\n")
	page := testkit.ReadFile(t, formatPage)
	before, rest, found := strings.Cut(page, exampleStart)
	example, after, ended := strings.Cut(rest, exampleEnd)
	if !found || !ended {
		t.Fatalf("%s has no worked example", formatPage)
	}
	want := workedExample(t, line)
	if *update {
		testkit.WriteFile(t, formatPage, before+exampleStart+want+exampleEnd+after)
		return
	}
	if example != want {
		t.Errorf("the worked example is\n%s\nand should be\n%s", example, want)
	}
}

// workedExample computes each value of a first line by the formulas of chapter
// 2, with none of the log's own code, and checks it against the line.
func workedExample(t *testing.T, line string) string {
	t.Helper()
	header := between(t, line, `{"crc":"`+line[8:16]+`",`, `,"salt":"`)
	salt := between(t, line, `,"salt":"`, `"`)
	meta := `"metadata":` + between(t, line, `,"metadata":`, `,"data":`)
	data := between(t, line, `,"data":`, "")
	data = data[:len(data)-1]
	raw, err := hex.DecodeString(salt)
	if err != nil {
		t.Fatal(err)
	}
	commit := sum(raw, sumOf(meta), sumOf(data))
	hash := sum(make([]byte, 32), sumOf(header), commit[:])
	crc := fmt.Sprintf("%08x", crc32.Checksum([]byte(line[18:]), crc32.MakeTable(crc32.Castagnoli)))
	if stored := between(t, line, `"hash":"`, `"`); stored != hex.EncodeToString(hash[:]) || line[8:16] != crc {
		t.Errorf("the line has hash %s and crc %s; by hand they are %x and %s", stored, line[8:16], hash, crc)
	}
	var b strings.Builder
	for _, row := range [][2]string{
		{"", line},
		{"header", header}, {"meta", meta},
		{"H(header)", hex.EncodeToString(sumOf(header))}, {"H(meta)", hex.EncodeToString(sumOf(meta))},
		{"H(data)", hex.EncodeToString(sumOf(data))}, {"commit", hex.EncodeToString(commit[:])},
		{"hash(1)", hex.EncodeToString(hash[:])},
		{"crc", fmt.Sprintf("%s, of the %d bytes from \"v\" through the closing brace", crc, len(line)-18)},
	} {
		if row[0] == "" {
			fmt.Fprintf(&b, "    %s\n\n", row[1])
			continue
		}
		fmt.Fprintf(&b, "    %-9s = %s\n", row[0], row[1])
	}
	return b.String()
}

// between is the text after start up to the next end; an empty end is the end
// of the text.
func between(t *testing.T, text, start, end string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, start)
	if end == "" {
		return rest
	}
	inner, _, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%q is not between %q and %q", text, start, end)
	}
	return inner
}

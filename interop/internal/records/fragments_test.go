package records

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The whole objects of a damaged document are read, with their places. An object within a read one,
// and an object that is cut off, is not.
func TestFragments(t *testing.T) {
	wanted := func(object []byte) bool { return bytes.HasPrefix(object, []byte(`{"id"`)) }
	read := func(content string) (all []string) {
		for rec, err := range Fragments(text("f", content), wanted) {
			if err != nil {
				all = append(all, fmt.Sprintf("%d rejected", rec.Line))
				continue
			}
			if at := rec.Offset; content[at:at+rec.Size] != string(rec.Value) || int64(strings.Count(content[:at], "\n"))+1 != rec.Line {
				t.Errorf("%s is not at %d, line %d", rec.Value, at, rec.Line)
			}
			all = append(all, string(rec.Value))
		}
		return all
	}
	content := "\x00\x00{{,\n \"messages\": [ {\"id\":1,\n\"in\":{\"id\":2}},\n {\"x\":{\"id\":3}}, {\"id\":4}, {\"id\":5,"
	if want, got := []string{"1 rejected", "{\"id\":1,\n\"in\":{\"id\":2}}", `{"id":3}`, `{"id":4}`}, read(content); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := read(strings.Repeat(`{"a":`, 2*mostAttempts) + `{"id":1}`); len(got) != 1 {
		t.Errorf("after many attempts: %q", got)
	}
}

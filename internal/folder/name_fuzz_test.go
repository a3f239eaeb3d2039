package folder

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
)

// Each session's name is legal in one folder, leaves room for suffixes, and differs
// from the names of other sessions even if case is ignored.
func FuzzFileName(f *testing.F) {
	long := strings.Repeat("x", 200)
	for _, ids := range [][2]string{
		{"a", "A"}, {".", ".."}, {"a/b", `a\b`}, {"%41", "A"}, {"é", "É"}, {long, long[:199]}, {strings.Repeat("É", 100), strings.Repeat("é", 100)},
		{"a.jsonl", "a"}, {"a.torn-1", "a"}, {"a.torn-1.0011223344556677", "a.torn-1"}, {".lock", "blobs"}, {"x~0011", "x%7e0011"},
		{strings.Repeat("x", 146) + strings.Repeat("É", 20), strings.Repeat("x", 147) + strings.Repeat("É", 20)}, {"con", "nul"}, {"com1.x", "%63om1.x"}, {"lpt9", "LPT9"}, {"ſ", "K"},
	} {
		f.Add(ids[0], ids[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if id, ok := SessionID(a); ok && FileName(id) != a {
			t.Fatalf("SessionID(%q) = %q, but the name of that id is %q", a, id, FileName(id))
		}
		if event.CheckSessionID(a) != nil {
			return
		}
		legal(t, a)
		if a == b || event.CheckSessionID(b) != nil {
			return
		}
		if x, y := FileName(a), FileName(b); strings.EqualFold(x, y) {
			t.Fatalf("%q and %q have the names %q and %q", a, b, x, y)
		}
	})
}

var windowsDevice = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)

func legal(t *testing.T, id string) {
	t.Helper()
	name := FileName(id)
	back, ok := SessionID(name)
	switch {
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-%~") != "", name[0] == '.', filepath.Base(name) != name:
		t.Fatalf("%q has the name %q", id, name)
	case windowsDevice.MatchString(name):
		t.Fatalf("%q has the name %q, which is a device on Windows", id, name)
	case ok != !strings.Contains(name, "~"), ok && back != id:
		t.Fatalf("%q has the name %q, which SessionIDs to %q, %v", id, name, back, ok)
	}
	if len(name) > MaxName {
		t.Fatalf("%q has the name %q: %d bytes are too long", id, name, len(name))
	}
}

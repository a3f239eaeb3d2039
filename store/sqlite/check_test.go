package sqlite

import (
	"bytes"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
)

// checkDetails joins the rules and details of Check's defects.
func checkDetails(t testing.TB, s *Store) string {
	t.Helper()
	var found []string
	for d, err := range s.Check(t.Context()) {
		must(t, err)
		if d.Path != "s.db" || d.Offset != -1 {
			t.Errorf("place %q %d", d.Path, d.Offset)
		}
		found = append(found, d.Rule+": "+d.Detail)
	}
	return strings.Join(found, "\n")
}

func TestCheck(t *testing.T) {
	path := tempPath(t)
	s := New(path)
	add(t, s, "a", event.Head{}, 5, "x")
	add(t, s, "b", event.Head{}, 3, "x")
	if got := checkDetails(t, s); got != "" {
		t.Errorf("found %s in an undamaged store", got)
	}
	must(t, s.Close())
	change(t, path, "DELETE FROM sessions WHERE id = 'a'")
	if got, want := checkDetails(t, open(t, path)), "stray: 5 events (seq 1 to 5) have no session"; !strings.HasPrefix(got, want) || !strings.Contains(got, "logtool store convert") {
		t.Errorf("found %q, want %q and the remedy", got, want)
	}
}

// Check finds a damaged page, and an index that does not match its table.
func TestCheckFindsDamagedPages(t *testing.T) {
	s, _ := damagedPages(t, func(page, line []byte) bool { return bytes.Contains(page, line) })
	if got := checkDetails(t, s); !strings.HasPrefix(got, "sqlite: ") {
		t.Errorf("found %q", got)
	}
}

package erase_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/repair"
)

// After a repair, the damaged and the repaired session have the same content: a
// redaction in one session reports the other.
func TestRedactionAfterRepair(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := testkit.Open(t, testkit.Stores["jsonl"](dir))
	for _, text := range []string{"one", "two", "three", "four", "five"} {
		if _, err := l.Append(ctx, "a", eventlog.Any(), event.UserMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(ctx, "b", eventlog.New(), event.UserMessage("of nobody")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.jsonl")
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(content, []byte("two"), []byte("tvo"), 1), 0o600)
	}
	if err == nil {
		_, err = repair.Session(ctx, l, "a", repair.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	redact := func(session, untouched, unread string, seqs ...int64) {
		t.Helper()
		done, err := erase.Redact(ctx, l, session, seqs, erase.RedactOptions{Reason: ""})
		if got := refs(done.Untouched); err != nil || got != untouched || strings.Join(done.Unread, " ") != unread {
			t.Errorf("redact %q %v: not touched: %q; unread: %q; %v", session, seqs, got, done.Unread, err)
		}
	}
	redact("a-salvaged", "a 4", "", 4)
	redact("a-salvaged", "a 1", "a", 1, 3)
	if _, err := repair.Session(ctx, l, "a", repair.Options{InPlace: true}); err != nil {
		t.Fatal(err)
	}
	redact("a", "", "", 3, 4)
	redact("a", "a-salvaged 5", "", 5)
}

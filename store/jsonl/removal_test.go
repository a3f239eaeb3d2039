package jsonl_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// Rewriting session "a" keeps the torn tails of session "a.torn-5".
func TestRewriteKeepsFilesOfOtherSessions(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	l := eventlog.Open(jsonl.New(dir))
	defer l.Close()
	for _, session := range []string{"a", "a.torn-5"} {
		e := event.UserMessage("hello")
		if _, err := l.Append(ctx, session, eventlog.New(), e); err != nil {
			t.Fatal(err)
		}
	}
	for name, removed := range map[string]bool{
		"a.torn-5": true, "a.torn-5.tmp": true, "a.torn-5.0123456789abcdef": true, "a.torn-5.notes": false, "a.torn-x": false,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := erase.Redact(ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: ""}); err != nil {
			t.Fatal(err)
		}
		e := event.UserMessage("again")
		head, err := l.Append(ctx, "a", eventlog.Any(), e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := erase.Redact(ctx, l, "a", []int64{head.Seq}, erase.RedactOptions{Reason: ""}); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); os.IsNotExist(err) != removed {
			t.Errorf("%s: missing is %v, want %v", name, os.IsNotExist(err), removed)
		}
	}
	if _, err := l.Head(ctx, "a.torn-5"); err != nil {
		t.Error(err)
	}
}

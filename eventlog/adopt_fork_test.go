//go:build !js

package eventlog_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/transfer"
)

// A fork with a first seq after the adopted or salvaged events is another session.
func TestNameTakenByFork(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l, other := testkit.Open(t, testkit.Stores["jsonl"](dir)), testkit.Open(t, testkit.Stores["sqlite"](t.TempDir()))
	head, err := l.Append(ctx, "parent", eventlog.New(), event.UserMessage("1"), event.UserMessage("2"), event.UserMessage("3"))
	for _, fork := range []string{"fork", "short-salvaged"} {
		if err == nil {
			_, err = testkit.Fork(ctx, l, fork, "parent", head.Seq)
		}
	}
	for range 2 {
		if err == nil {
			_, err = l.Append(ctx, "short", eventlog.Any(), event.UserMessage("hello"))
		}
	}
	if err == nil {
		_, err = other.Append(ctx, "fork", eventlog.New(), event.UserMessage("hello"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Adopt(ctx, l, "fork", other.Store().Read(ctx, "fork", eventlog.Span{})); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("adopted: %v", err)
	}
	path := filepath.Join(dir, "short.jsonl")
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.Replace(content, []byte("hello"), []byte("hallo"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repair.Session(ctx, l, "short", repair.Options{As: "fork"}); !errors.Is(err, eventlog.ErrExists) {
		t.Errorf("salvaged: %v", err)
	}
	if done, err := repair.Session(ctx, l, "short", repair.Options{}); err != nil || done.As != "short-salvaged-2" {
		t.Errorf("salvaged as %q, %v", done.As, err)
	}
}

package eventlog_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/convlog/convlog/eventlog"
)

// A fork that begins behind the end of what is adopted, or salvaged, is another
// session.
func TestNameTakenByFork(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l, other := openLog(t, stores["jsonl"](dir)), openLog(t, stores["sqlite"](t.TempDir()))
	b := busy{t: t, log: l, acked: map[string]eventlog.Head{}}
	head, err := l.Append(ctx, "parent", eventlog.New, userSays(t, "1"), userSays(t, "2"), userSays(t, "3"))
	for _, fork := range []string{"fork", "short-salvaged"} {
		if err == nil {
			err = b.fork(ctx, fork, "parent", head)
		}
	}
	for range 2 {
		if err == nil {
			_, err = l.Append(ctx, "short", eventlog.Any, userSays(t, "hello"))
		}
	}
	if err == nil {
		_, err = other.Append(ctx, "fork", eventlog.New, userSays(t, "hello"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Adopt(ctx, "fork", other.Store().Read(ctx, "fork", eventlog.Span{})); !errors.Is(err, eventlog.ErrConflict) {
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
	if _, err := l.Repair(ctx, "short", eventlog.RepairOptions{As: "fork"}); !errors.Is(err, eventlog.ErrExists) {
		t.Errorf("salvaged: %v", err)
	}
	if done, err := l.Repair(ctx, "short", eventlog.RepairOptions{}); err != nil || done.As != "short-salvaged-2" {
		t.Errorf("salvaged as %q, %v", done.As, err)
	}
}

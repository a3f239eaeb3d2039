package jsonl_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// An append waits for another process's lock until the timeout and writes nothing.
// Later appends succeed.
func TestLockTimeout(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	log := eventlog.Open(jsonl.New(dir, jsonl.Options{LockTimeout: time.Millisecond}))
	defer log.Close()
	say := func() error {
		_, err := log.Append(ctx, "s", eventlog.Any(), event.UserMessage("hello"))
		return err
	}
	if err := say(); err != nil {
		t.Fatal(err)
	}
	unlock, err := flock.Lock(ctx, filepath.Join(dir, "s.jsonl"), true, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := say(); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("while the session is locked: %v", err)
	}
	unlock()
	if err := say(); err != nil {
		t.Fatal(err)
	}
	unlock, err = flock.Lock(ctx, filepath.Join(dir, ".lock"), false, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Collect(ctx, log, erase.CollectOptions{}); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("while the store is locked: %v", err)
	}
	unlock()
	if head, err := log.Head(ctx, "s"); err != nil || head.Seq != 2 {
		t.Errorf("head is %v, %v", head, err)
	}
}

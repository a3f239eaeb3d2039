package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
)

// A store waits for a lock of another process as long as its LockTimeout. Then it
// returns an error and writes nothing. Later calls succeed.
func TestLockTimeout(t *testing.T) {
	ctx, path := t.Context(), filepath.Join(t.TempDir(), "s.db")
	open := func() *eventlog.Log {
		log := eventlog.Open(sqlite.New(path, sqlite.Options{LockTimeout: time.Millisecond}))
		t.Cleanup(func() { log.Close() })
		return log
	}
	say := func(log *eventlog.Log) error {
		_, err := log.Append(ctx, "s", eventlog.Any(), event.UserMessage("hello"))
		return err
	}
	log := open()
	if err := say(log); err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	do := func(statement string) {
		t.Helper()
		if _, err := other.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	do("BEGIN IMMEDIATE")
	if err := say(log); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("during a write of another process: %v", err)
	}
	if err := say(open()); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("opened during a write of another process: %v", err)
	}
	do("ROLLBACK")
	unlock, err := flock.Lock(ctx, path+"-lock", false, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Collect(ctx, log, erase.CollectOptions{}); !errors.Is(err, eventlog.ErrLocked) {
		t.Errorf("while the store is locked: %v", err)
	}
	unlock()
	if head, err := log.Head(ctx, "s"); err != nil || head.Seq != 1 {
		t.Errorf("head is %v, %v", head, err)
	}
}

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// retire is killed at any moment, again and again. Each session is always whole in the
// store or in the archive. A last run, which is not killed, retires the rest.
func TestKilledRetire(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{kindJSONL, kindSQLite} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			seed := uint64(time.Now().UnixNano())
			t.Logf("seed %d", seed)
			k := &killing{t: t, dir: dir, rand: rand.New(rand.NewPCG(seed, 0)), store: place{kind: kind, path: filepath.Join(dir, "log.db")}}
			heads := fillIdle(t, k.store, 20)
			archive := place{kind: kindJSONL, path: filepath.Join(dir, "archive")}
			args := []string{"store", "retire", "--idle", "30d", "--archive", archive.path, "--yes"}
			for range *rounds {
				k.killed(args...)
				checkHeads(t, heads, k.store, archive)
			}
			k.run(args...)
			checkHeads(t, heads, archive)
			verifyStore(t, archive)
			verifyStore(t, k.store)
			if left := headsOf(t, k.store); len(left) > 1 { // the notes of the store stay
				t.Errorf("%d sessions are left", len(left))
			}
		})
	}
}

// fillIdle stores n sessions of 2020 with spilled data, and returns their heads.
func fillIdle(t *testing.T, at place, n int) map[string]event.Head {
	heads := map[string]event.Head{}
	err := at.with(forWriting, func(l *eventlog.Log) (err error) {
		for i := range n {
			e := event.UserMessage(strings.Repeat(fmt.Sprint("session ", i), 40_000))
			e.Timestamp = time.Date(2020, 5, 1, 0, 0, 0, 0, time.UTC)
			id := fmt.Sprint("idle-", i)
			if heads[id], err = l.Append(t.Context(), id, eventlog.New(), e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return heads
}

// headsOf are the heads of all sessions of a store; none for a missing store.
func headsOf(t *testing.T, at place) map[string]event.Head {
	heads := map[string]event.Head{}
	if at.exists() != nil {
		return heads
	}
	err := at.with(forReading, func(l *eventlog.Log) error {
		for info, err := range l.Sessions(t.Context()) {
			if err = errors.Join(err, info.Err); err != nil {
				return err
			}
			heads[info.ID] = info.Last.Head()
			for _, err := range l.Read(t.Context(), info.ID, eventlog.All()) { // with its blobs
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	return heads
}

// checkHeads checks that each session is in one of the stores at its head.
func checkHeads(t *testing.T, want map[string]event.Head, places ...place) {
	t.Helper()
	var found []map[string]event.Head
	for _, at := range places {
		found = append(found, headsOf(t, at))
	}
	for id, head := range want {
		whole := false
		for _, heads := range found {
			whole = whole || heads[id] == head
		}
		if !whole {
			t.Errorf("session %q is whole nowhere", id)
		}
	}
}

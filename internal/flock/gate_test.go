package flock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/convlog/convlog/internal/flock"
)

// gateOf opens the gate of a lock.
func gateOf(t *testing.T, path string) *os.File {
	t.Helper()
	gate, err := os.OpenFile(path+flock.GateSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	return gate
}

// closed reports whether another file holds the gate.
func closed(t *testing.T, gate *os.File) bool {
	t.Helper()
	open, err := flock.Try(int(gate.Fd()), true)
	if err != nil {
		t.Fatal(err)
	}
	if open {
		if err := flock.Unlock(int(gate.Fd())); err != nil {
			t.Fatal(err)
		}
	}
	return !open
}

// New shared callers do not overtake a waiting exclusive caller.
func TestSharersDoNotOvertake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first := lock(t, path, false)
	got := make(chan func(), 1)
	go func() {
		if unlock, err := flock.Lock(context.Background(), path, true, 0o600); err == nil {
			got <- unlock
		}
		close(got)
	}()
	for gate := gateOf(t, path); !closed(t, gate); {
		time.Sleep(time.Millisecond)
	}
	refused(t, path, false)
	first()
	unlock, ok := <-got
	if !ok {
		t.Fatal("the waiter did not get the lock")
	}
	refused(t, path, false)
	unlock()
	if gate := gateOf(t, path); closed(t, gate) {
		t.Error("the gate stays closed")
	}
	lock(t, path, false)()
}

// A process that holds the gate forever does not block a free lock.
func TestGateIsACourtesy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	gate := gateOf(t, path)
	if ok, err := flock.Try(int(gate.Fd()), true); !ok {
		t.Fatal(err)
	}
	lock(t, path, false)()
	lock(t, path, true)()
}

package flock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/convlog/convlog/internal/flock"
)

func lock(t *testing.T, path string, exclusive bool) func() {
	t.Helper()
	unlock, err := flock.Lock(t.Context(), path, exclusive, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// refused checks that waiting for a lock ends at the deadline.
func refused(t *testing.T, path string, exclusive bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := flock.Lock(ctx, path, exclusive, 0o600); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the deadline", err)
	}
}

func TestLocksExcludeEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := lock(t, path, true)
	refused(t, path, true)
	refused(t, path, false)
	unlock()

	shared := []func(){lock(t, path, false), lock(t, path, false)}
	refused(t, path, true)
	shared[0]()
	refused(t, path, true)
	shared[1]()
	lock(t, path, true)()
}

func TestWaiterGetsTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock := lock(t, path, true)
	got := make(chan error)
	go func() {
		next, err := flock.Lock(context.Background(), path, true, 0o600)
		if err == nil {
			next()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("two hold the lock: %v", err)
	case <-time.After(10 * time.Millisecond):
	}
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestEndedContextTakesNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := flock.Lock(ctx, path, true, 0o600); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	lock(t, path, true)()
}

func TestModeAndMissingFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	lock(t, path, true)()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" { // which has no such modes
		t.Errorf("got %v, %v", info, err)
	}
	if _, err := flock.Lock(t.Context(), filepath.Join(path, "below"), true, 0o600); err == nil {
		t.Error("a lock below a file was taken")
	}
}

package fork_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
)

// A forest holds at most 200 bytes of a root, beside its id.
func TestForestIsSmall(t *testing.T) {
	const most = 200
	sessions := testsize.Pick(1000, 2000, 10_000)
	few, many := forestSize(t, sessions/4), forestSize(t, sessions)
	if most := int64(sessions * 3 / 4 * most); many-few > most {
		t.Errorf("a forest of %d sessions keeps %d bytes, and of %d sessions %d, want at most %d more", sessions/4, few, sessions, many, most)
	}
}

// forestSize returns the memory of a forest of sessions, in bytes.
func forestSize(t *testing.T, sessions int) int64 {
	t.Helper()
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	for i := range sessions {
		if _, err := log.Append(t.Context(), fmt.Sprintf("s%05d", i), eventlog.New(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	before := heapInUse()
	forest, err := fork.Tree(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	after := heapInUse()
	if len(forest.Roots) != sessions {
		t.Errorf("got %d roots, want %d", len(forest.Roots), sessions)
	}
	runtime.KeepAlive(forest)
	runtime.KeepAlive(log)
	return after - before
}

// heapInUse is the memory of the reachable objects, in bytes. A second collection frees what
// a sync.Pool kept during the first one.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

package fork_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/memory"
)

// A forest holds at most 200 bytes of a root, beside its id.
func TestForestIsSmall(t *testing.T) {
	const sessions, most = 10_000, 200
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	for i := range sessions {
		if _, err := log.Append(t.Context(), fmt.Sprintf("s%05d", i), eventlog.New(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	forest, err := fork.Tree(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); len(forest.Roots) != sessions || kept > sessions*most {
		t.Errorf("%d sessions keep %d bytes, want at most %d", len(forest.Roots), kept, sessions*most)
	}
	runtime.KeepAlive(forest)
	runtime.KeepAlive(log)
}

//go:build !js

package eventlog_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
)

// The events that a reading of a path buffers do not keep the events beside the path in
// memory.
func TestPathBufferIsSmall(t *testing.T) {
	branches := testsize.Pick[int64](40, 80, 400)
	few, many := pathBuffer(t, branches/4), pathBuffer(t, branches)
	// The buffers, and less than an event beside the path has.
	if most := 4<<20 + branches*3/4*250*100; many-few > most {
		t.Errorf("a reading beside %d branches keeps %d bytes, and beside %d branches %d, want at most %d more", branches/4, few, branches, many, most)
	}
}

// pathBuffer returns the memory of a reading of a path beside branches of 250 events, in
// bytes.
func pathBuffer(t *testing.T, branches int64) int64 {
	t.Helper()
	log := eventlog.Open(jsonl.New(t.TempDir(), jsonl.Options{NoSync: true}))
	t.Cleanup(func() { _ = log.Close() })
	talk(t, log, "s", 1)
	for i := range branches {
		talk(t, log, "s", 250)
		move(t, log, "s", 1+251*i)
	}
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for e, err := range log.Read(context.Background(), "s", eventlog.All().OnPath()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq == 1 {
			runtime.GC()
			runtime.ReadMemStats(&during)
		}
	}
	return int64(during.HeapAlloc) - int64(before.HeapAlloc)
}

//go:build !js

package eventlog_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

// The events that a reading of a path buffers do not keep the events beside the path in
// memory.
func TestPathBufferIsSmall(t *testing.T) {
	const branches, most = 400, 16 << 20
	log := eventlog.Open(jsonl.New(t.TempDir(), jsonl.Options{Sync: jsonl.Never}))
	t.Cleanup(func() { _ = log.Close() })
	talk(t, log, "s", 1)
	for i := range int64(branches) {
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
	if kept := int64(during.HeapAlloc) - int64(before.HeapAlloc); kept > most {
		t.Errorf("the reading keeps %d bytes, want at most %d", kept, most)
	}
}

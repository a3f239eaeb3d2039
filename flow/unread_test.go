package flow

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// feed puts n deltas of 10 bytes, and with other chunks a progress value and a patch beside
// each.
func feed(t *testing.T, s *stream, n int, mixed bool) {
	t.Helper()
	for i := range n {
		s.put(Chunk{Delta: &eventlog.Delta{Kind: event.TextPart, Text: fmt.Sprintf("%9d ", i)}, Attempt: 1})
		if !mixed {
			continue
		}
		s.put(Chunk{Progress: i})
		patch := func() (jsontext.Value, error) { return jsontext.Value(`["patch"]`), nil }
		whole := func() (jsontext.Value, error) { return jsontext.Value(fmt.Sprintf(`[%d]`, i)), nil }
		if err := s.putPatch(patch, whole); err != nil {
			t.Fatal(err)
		}
	}
}

// allocated is the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The work for unread deltas grows with their number, and not with its square.
func TestUnreadDeltasCostLinearWork(t *testing.T) {
	for name, mixed := range map[string]bool{"deltas": false, "mixed": true} {
		work := func(n int) uint64 { return allocated(func() { feed(t, newStream(), n, mixed) }) }
		work(1000)
		if one, four := work(20_000), work(80_000); four > 8*one {
			t.Errorf("%s: %d bytes for 20,000, %d bytes for 80,000", name, one, four)
		}
	}
}

// The queue of a client that does not read is bounded. It keeps the newest deltas and progress
// values, one patch, and everything that the log has. The client learns how many it missed.
func TestUnreadChunksAreBounded(t *testing.T) {
	s := newStream()
	s.put(Chunk{Snapshot: "first"})
	feed(t, s, 1_000_000, false)
	if q := &s.queue; q.bytes > maxUnreadBytes || q.chunks.Len() > maxUnread || q.bytes < maxUnreadBytes/2 {
		t.Errorf("%d bytes in %d chunks", q.bytes, q.chunks.Len())
	}
	feed(t, s, 100_000, true)
	if q := &s.queue; q.bytes > maxUnreadBytes || q.chunks.Len() > maxUnread+3 {
		t.Errorf("mixed: %d bytes in %d chunks", q.bytes, q.chunks.Len())
	}
	s.put(Chunk{Snapshot: "last"})
	s.end(nil)
	read, lost, patches, snapshots := 0, 0, "", ""
	for {
		c, ok, err := s.next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		read += len(c.Text()) / 10
		if c.Progress != nil {
			read++
		}
		lost += c.Lost
		patches += string(c.Patch)
		snapshots += c.Snapshot
	}
	if read+lost != 1_200_000 || read == 0 {
		t.Errorf("%d read, %d lost", read, lost)
	}
	if patches != "[99999]" || snapshots != "firstlast" {
		t.Errorf("patches %s, snapshots %s", patches, snapshots)
	}
}

// Deltas of one part that nobody read are one chunk, with the whole text in order.
func TestUnreadDeltasAreJoined(t *testing.T) {
	s := newStream()
	want := strings.Builder{}
	for i := range 100 {
		text := fmt.Sprint(i, " ")
		want.WriteString(text)
		s.put(Chunk{Delta: &eventlog.Delta{Kind: event.TextPart, Text: text}, Attempt: 1})
	}
	s.put(Chunk{Delta: &eventlog.Delta{Kind: event.TextPart, Text: "again"}, Attempt: 2})
	for _, text := range []string{want.String(), "again"} {
		if c, ok, err := s.next(t.Context()); !ok || err != nil || c.Text() != text || c.Lost != 0 {
			t.Fatalf("%v %v %q", ok, err, c.Text())
		}
	}
}

package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

func TestListingContinuesAfterDamage(t *testing.T) {
	dir := t.TempDir()
	good := content(sealed(t, "b", 1, 1))
	flipped := content(sealed(t, "c", 1, 1))
	flipped[60] ^= 1
	for name, file := range map[string][]byte{
		"b.jsonl":       append(append([]byte(nil), good...), "torn"...),
		"c.jsonl":       flipped,
		"d.jsonl":       good,                       // holds session b
		"E.jsonl":       content(sealed(t, "E", 1)), // wrong name for E
		"f.jsonl":       []byte(`{"type":"summary"}` + "\n"),
		"g.jsonl":       []byte(`{"crc":"`), // no complete append: not a session
		"h.jsonl":       nil,
		"notes.txt":     []byte("x"),
		"b.torn-3":      []byte("x"),
		"i.rewrite.tmp": []byte("x"),
		"x~0123.jsonl":  []byte("garbage\n{}\n"),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), file, 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, "j.jsonl"), 0o700))
	want := []struct {
		id      string
		damaged bool
	}{{"", true}, {"E", true}, {"b", false}, {"c", true}, {"d", true}, {"f", true}}
	i := 0
	for info, err := range open(t, dir).Sessions(t.Context()) {
		must(t, err)
		if i >= len(want) || info.ID != want[i].id || (info.Err != nil) != want[i].damaged {
			t.Fatalf("listed %q with error %v as number %d", info.ID, info.Err, i)
		}
		if info.Err != nil {
			wantErr(t, info.Err, eventlog.ErrCorrupt)
		} else if info.Events() != 2 || info.Bytes != int64(len(good)) || info.First.Seq != 1 || info.Last.Seq != 2 {
			t.Errorf("listed %+v", info)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d rows, want %d", i, len(want))
	}
}

// A caller that keeps a listing keeps two lines per session, and no buffer.
func TestListingKeepsTwoLines(t *testing.T) {
	const few, many, most = 50, 200, 3 << 10
	less, more := listingSize(t, few), listingSize(t, many)
	if more-less > (many-few)*most {
		t.Errorf("%d sessions keep %d bytes, and %d sessions %d, want at most %d of each", few, less, many, more, most)
	}
}

// listingSize returns the memory of a listing, in bytes.
func listingSize(t *testing.T, sessions int) int64 {
	t.Helper()
	dir := t.TempDir()
	for i := range sessions {
		name := fmt.Sprint("s", i)
		file := content(sealed(t, name, ones(60)...))
		if i%2 == 1 {
			file = append(file, "torn"...)
		}
		write(t, dir, name, file)
	}
	s := open(t, dir)
	before := heapInUse()
	var infos []eventlog.SessionInfo
	for info, err := range s.Sessions(t.Context()) {
		must(t, errors.Join(err, info.Err))
		infos = append(infos, info)
	}
	kept := heapInUse() - before
	if len(infos) != sessions {
		t.Errorf("got %d sessions, want %d", len(infos), sessions)
	}
	runtime.KeepAlive(infos)
	return kept
}

// heapInUse is the memory of the reachable objects, in bytes.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	_, err := s.Version(t.Context(), "s")
	wantErr(t, err, eventlog.ErrNotFound)
	events := sealed(t, "s", 1, 1)
	appendAll(t, s, "s", event.Head{}, events[:1])
	first, err := s.Version(t.Context(), "s")
	must(t, err)
	same, err := open(t, dir).Version(t.Context(), "s")
	must(t, err)
	appendAll(t, open(t, dir), "s", head(events[:1]), events[1:])
	second, err := s.Version(t.Context(), "s")
	must(t, err)
	must(t, s.Rewrite(t.Context(), "s", head(events), []event.Event{other(t, events, 1)}, nil))
	third, err := s.Version(t.Context(), "s")
	must(t, err)
	if first != same || first == second || second == third {
		t.Errorf("versions %x, %x, %x, %x: want the second equal to the first and the others new", first, same, second, third)
	}
}

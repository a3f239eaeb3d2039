package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// eventChain makes n events of one append after a head. Each has the text.
func eventChain(session string, after event.Head, n int, text string) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = newEvent(session, after, n-1-i, text)
		after = events[i].Head()
	}
	return events
}

// newEvent renders a line by docs/FORMAT.md and parses it.
func newEvent(session string, after event.Head, more int, text string) event.Event {
	header := fmt.Sprintf(`"v":1,"seq":%d,"id":"%s","session_id":"%s","type":"op_logged","timestamp":"2027-01-15T08:00:00.000000000Z"`,
		after.Seq+1, event.NewID(), session)
	if more > 0 {
		header += fmt.Sprintf(`,"more":%d`, more)
	}
	data := fmt.Sprintf(`{"text":%q}`, text)
	salt := sha256.Sum256([]byte(header))
	none := sha256.Sum256(nil)
	content := sha256.Sum256([]byte(data))
	commit := sha256.Sum256(join(salt[:16], none[:], content[:]))
	head := sha256.Sum256([]byte(header))
	link := sha256.Sum256(join(after.Hash[:], head[:], commit[:]))
	body := fmt.Sprintf(`%s,"salt":"%s","hash":"%s","data":%s}`, header, hex.EncodeToString(salt[:16]), hex.EncodeToString(link[:]), data)
	return mustParse(body, session)
}

func mustParse(body, session string) event.Event {
	line := fmt.Sprintf(`{"crc":"%08x",%s`, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), body)
	e, err := event.Parse([]byte(line), session)
	if err != nil {
		panic(fmt.Sprintf("made a bad line: %v\n%s", err, line))
	}
	return e
}

// withText returns e with another text, and the same header and hash.
func withText(e event.Event, text string) event.Event {
	body, _, _ := strings.Cut(string(e.Line()[18:]), `,"data":`)
	return mustParse(fmt.Sprintf(`%s,"data":{"text":%q}}`, body, text), e.SessionID)
}

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func headOf(events []event.Event) event.Head { return events[len(events)-1].Head() }

// open opens a store and closes it at the end of the test.
func open(t testing.TB, path string, opts ...Options) *Store {
	t.Helper()
	s := New(path, opts...)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func tempPath(t testing.TB) string { return filepath.Join(t.TempDir(), "s.db") }

// add appends n events in one append and returns the new head.
func add(t testing.TB, s *Store, session string, after event.Head, n int, text string) event.Head {
	t.Helper()
	for range n {
		events := eventChain(session, after, 1, text)
		must(t, s.Append(t.Context(), session, after, events, false))
		after = headOf(events)
	}
	return after
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func want(t testing.TB, target, got error) {
	t.Helper()
	if !errors.Is(got, target) {
		t.Fatalf("got error %v, want %v", got, target)
	}
}

// collect reads a sequence up to its first error.
func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// seqs returns the seqs of a span.
func seqs(t testing.TB, s eventlog.Store, session string, r eventlog.Span) (all []int64) {
	t.Helper()
	events, err := collect(s.Read(context.Background(), session, r))
	must(t, err)
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

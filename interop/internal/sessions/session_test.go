package sessions

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
)

var errBroken = errors.New("the disk is broken")

// breaking is a store whose appends fail once so many have been made.
type breaking struct {
	eventlog.Store
	left int
}

func (s *breaking) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	if s.left == 0 {
		return errBroken
	}
	s.left--
	return s.Store.Append(ctx, session, expect, events, durable)
}

// opened is a new session over a store that takes so many appends.
func opened(t *testing.T, appends int) (*Session, *eventlog.Log) {
	t.Helper()
	log := eventlog.Open(&breaking{jsonl.New(t.TempDir()), appends})
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	s, err := Open(t.Context(), log, "s", func(*event.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// add adds the n-th message.
func add(t *testing.T, s *Session, n int) (Key, int64) {
	t.Helper()
	e := event.UserMessage(fmt.Sprint(n))
	k := Key{Own: fmt.Sprint(n)}
	return k, s.Add(k, time.Unix(int64(n), 0), e)
}

func TestBatchesAreWrittenInOrderBehindTheCaller(t *testing.T) {
	s, log := opened(t, 100)
	for n := range 100 {
		k, seq := add(t, s, n)
		if want := int64(n + 1); seq != want || s.Seq() != want {
			t.Fatalf("event %d is at %d, the newest at %d", n, seq, s.Seq())
		}
		if m := s.Find(k, nil); m.Seq != seq {
			t.Errorf("event %d is found at %d", n, m.Seq)
		}
		if n%3 == 0 {
			if err := s.FlushAsync(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Flush(t.Context()); err != nil || s.Written() != 100 {
		t.Fatalf("%d written: %v", s.Written(), err)
	}
	n := 0
	for e, err := range log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if m, _, err := event.Decode[event.Message](&e); err != nil || m.Text() != fmt.Sprint(n) {
			t.Errorf("event %d says %q: %v", e.Seq, m.Text(), err)
		}
		n++
	}
	if n != 100 {
		t.Errorf("%d events", n)
	}
}

// A batch that cannot be written discards the events added after it. Its error is
// returned once, by the next call.
func TestABatchThatFailsBehindTheCaller(t *testing.T) {
	for name, next := range map[string]func(s *Session) error{
		"flush":        func(s *Session) error { return s.Flush(t.Context()) },
		"flush async":  func(s *Session) error { return s.FlushAsync(t.Context()) },
		"drop, flush":  func(s *Session) error { s.Drop(); return s.Flush(t.Context()) },
		"count, flush": func(s *Session) error { s.Written(); return s.Flush(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			s, log := opened(t, 1)
			kept, _ := add(t, s, 0)
			if err := s.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			lost, _ := add(t, s, 1)
			if err := s.FlushAsync(t.Context()); err != nil {
				t.Fatal(err)
			}
			meanwhile, _ := add(t, s, 2)
			if err := next(s); !errors.Is(err, errBroken) {
				t.Fatalf("%v, want %v", err, errBroken)
			}
			for k, want := range map[Key]bool{kept: true, lost: false, meanwhile: false} {
				if ok := s.Find(k, nil).Seq > 0; ok != want {
					t.Errorf("%v is known: %v", k, ok)
				}
			}
			if s.Seq() != 1 || s.Written() != 1 {
				t.Errorf("the newest is %d, %d written", s.Seq(), s.Written())
			}
			if err := s.Flush(t.Context()); err != nil {
				t.Errorf("returned again: %v", err)
			}
			if head, err := log.Head(t.Context(), "s"); err != nil || head.Seq != 1 {
				t.Errorf("the log's head is %v: %v", head, err)
			}
		})
	}
}

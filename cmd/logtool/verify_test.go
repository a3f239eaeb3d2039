package main

import (
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// A session that is removed while the store is verified is no damage.
func TestVerifyWhileASessionIsRemoved(t *testing.T) {
	log := eventlog.Open(jsonl.New(t.TempDir(), jsonl.Options{NoSync: true}))
	defer func() { _ = log.Close() }()
	for _, session := range []string{"a", "b"} {
		if _, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	a := &app{out: &out, err: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
	v := verifyRun{app: a, log: log, printer: a.printer(), verifier: verify.New(log)}
	if err := v.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := erase.Remove(t.Context(), log, "a"); err != nil {
		t.Fatal(err)
	}
	if err := v.runAll(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if want := (verifySum{Sessions: 1, Events: 1}); v.all != want {
		t.Errorf("verified %+v, not %+v: %s", v.all, want, out.String())
	}
	// A named session that is missing is an error.
	if err := a.verify(t.Context(), log, []string{"a"}, nil, nil); err == nil {
		t.Error("a session that is not there was verified")
	}
}

// busyStore is a store whose check runs until a session is read, and locks all readers out.
type busyStore struct {
	eventlog.Store
	read, checked chan struct{}
	first         sync.Once
}

func (s *busyStore) Check(context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		<-s.read
		defer close(s.checked)
		for _, d := range []eventlog.Defect{{Session: "torn", Rule: verify.RuleUnlisted}, {Session: "a", Rule: verify.RuleUnlisted}, {Offset: -1, Rule: "index", Detail: "empty"}} {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (s *busyStore) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	s.first.Do(func() { close(s.read) })
	select {
	case <-s.checked:
		return s.Store.Read(ctx, session, span)
	default:
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, eventlog.ErrLocked) }
	}
}

// Sessions are verified while the store is checked. Sessions that were locked, and sessions that the
// listing lacks, are verified after the check.
func TestVerifyBesideTheCheckOfTheStore(t *testing.T) {
	inner := memory.New()
	say := eventlog.Open(inner)
	for _, session := range []string{"a", "b", "torn"} {
		if _, err := say.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	log := eventlog.Open(&busyStore{Store: inner, read: make(chan struct{}), checked: make(chan struct{})})
	var out strings.Builder
	a := &app{out: &out, err: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
	v := verifyRun{app: a, log: log, printer: a.printer(), verifier: verify.New(log), chosen: []string{"a", "b"}}
	since := &sinceRow{New: []string{"b"}}
	if err := v.runAll(t.Context(), since); err != nil {
		t.Fatal(err)
	}
	if want := (verifySum{Sessions: 3, Events: 3, Defects: 1}); v.all != want {
		t.Errorf("verified %+v, not %+v: %s", v.all, want, out.String())
	}
	if want := []string{"b", "torn"}; !slices.Equal(since.New, want) {
		t.Errorf("new since the checkpoint: %q, not %q", since.New, want)
	}
}

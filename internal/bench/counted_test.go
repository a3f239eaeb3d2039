//go:build unix

package main

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
)

// work is what an operation does, per event of its session or per session of its store.
type work struct{ statements, events, bytes, allocations, allocated float64 }

// growth is an upper bound for the work in a store that is ten times as large.
var growth = []struct {
	what           string
	of             func(work) float64
	most, constant float64
}{
	{"statements", func(w work) float64 { return w.statements }, maxGrowth, 0.05},
	{"events read", func(w work) float64 { return w.events }, maxGrowth, 0.05},
	{"bytes read", func(w work) float64 { return w.bytes }, maxGrowth, 10},
	{"allocations", func(w work) float64 { return w.allocations }, maxGrowth, 1},
	{"bytes allocated", func(w work) float64 { return w.allocated }, maxGrowth, 200},
}

// wantNoGrowth compares the work in a small and in a large store.
func wantNoGrowth(t *testing.T, name string, before, after work) {
	t.Helper()
	for _, g := range growth {
		if g.of(after) > g.most*g.of(before)+g.constant {
			t.Errorf("%s: %s: %.1f in the small store, %.1f in the large one", name, g.what, g.of(before), g.of(after))
		}
	}
}

// countingStore counts the reads, listings, lookups and appends of a store in memory, and
// the events and the bytes of lines that it yields. Redactions write several sessions at
// the same time.
type countingStore struct {
	*memory.Store
	statements, events, bytes atomic.Int64
}

func (s *countingStore) yielded(e *event.Event) {
	s.events.Add(1)
	s.bytes.Add(int64(len(e.Line())))
}

func (s *countingStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	s.statements.Add(1)
	return s.Store.Append(ctx, session, expect, events, durable)
}

func (s *countingStore) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return s.rows(s.Store.Sessions(ctx))
}

func (s *countingStore) Related(ctx context.Context, session string) iter.Seq2[eventlog.SessionInfo, error] {
	return s.rows(s.Store.Related(ctx, session))
}

func (s *countingStore) rows(rows iter.Seq2[eventlog.SessionInfo, error]) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		s.statements.Add(1)
		for info, err := range rows {
			s.yielded(&info.First)
			s.yielded(&info.Last)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (s *countingStore) Read(ctx context.Context, session string, span eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		s.statements.Add(1)
		for e, err := range s.Store.Read(ctx, session, span) {
			if err == nil {
				s.yielded(&e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// TestWorkPerEventDoesNotGrow runs each operation on each shape of session. An operation
// that visits all pairs of events does ten times as much work per event in a session that
// is ten times as long. The smaller forms run each operation on a few of the shapes.
func TestWorkPerEventDoesNotGrow(t *testing.T) {
	const few, many = 300, 3000
	b := &bench{}
	for i, s := range shapes {
		short, long := s.events(few), s.events(many)
		for j, op := range operations {
			if !testsize.Every(i+j, 6) {
				continue
			}
			before, after := workOf(t, b, op, short), workOf(t, b, op, long)
			wantNoGrowth(t, op.name+" of shape "+s.name, before, after)
		}
	}
}

// TestWorkPerSessionDoesNotGrow runs each operation on stores of each shape; the smaller
// forms run some of these pairs.
func TestWorkPerSessionDoesNotGrow(t *testing.T) {
	const few, many = 200, 2000
	for i, op := range storeOperations {
		for j, shape := range op.shapes {
			if !testsize.Every(i+j, 4) {
				continue
			}
			wantNoGrowth(t, fmt.Sprintf("%s, sessions %s", op.name, shape), workOver(t, op, shape, few), workOver(t, op, shape, many))
		}
	}
}

func workOver(t *testing.T, op storeOperation, shape storeShape, n int) work {
	t.Helper()
	store := &countingStore{Store: memory.New()}
	log := eventlog.Open(store)
	defer func() { _ = log.Close() }()
	s, err := fillMany(t.Context(), log, shape, n)
	if err != nil {
		t.Fatal(err)
	}
	return store.count(t, op.name, n, func() error { return op.run(t.Context(), s) })
}

func workOf(t *testing.T, b *bench, op operation, events []event.Event) work {
	t.Helper()
	store := &countingStore{Store: memory.New()}
	log := eventlog.Open(store)
	defer func() { _ = log.Close() }()
	if err := appendAll(t.Context(), log, shapedSession, slices.Clone(events), batchLen); err != nil {
		t.Fatal(err)
	}
	run, err := op.prepare(t.Context(), b, log, shapedSession)
	if err != nil {
		t.Fatalf("%s: %v", op.name, err)
	}
	return store.count(t, op.name, len(events), run)
}

// count returns the work of run per item.
func (s *countingStore) count(t *testing.T, name string, items int, run func() error) work {
	t.Helper()
	var before, after runtime.MemStats
	s.statements.Store(0)
	s.events.Store(0)
	s.bytes.Store(0)
	runtime.ReadMemStats(&before)
	if err := run(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	runtime.ReadMemStats(&after)
	n := float64(items)
	return work{
		statements: float64(s.statements.Load()) / n, events: float64(s.events.Load()) / n, bytes: float64(s.bytes.Load()) / n,
		allocations: float64(after.Mallocs-before.Mallocs) / n, allocated: float64(after.TotalAlloc-before.TotalAlloc) / n,
	}
}

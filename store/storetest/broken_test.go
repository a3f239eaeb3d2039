package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// broken is a way of breaking a store, and promises that must notice.
type broken struct {
	name    string
	wrap    func(m *Memory) eventlog.Store
	notices []string
}

func brokenStores() []broken {
	return []broken{
		{"drops the last line", func(m *Memory) eventlog.Store { return &dropsLast{m} },
			[]string{"store/append and read back", "append/read back", "race/nothing lost with Any"}},
		{"accepts stale heads", func(m *Memory) eventlog.Store { return &acceptsStale{m} },
			[]string{"store/compares the head", "store/one writer wins", "handles/stale memory", "race/one winner at a head across handles"}},
		{"reorders a batch", func(m *Memory) eventlog.Store { return &reorders{m} },
			[]string{"store/append and read back", "append/read back", "race/nothing lost with Any"}},
		{"writes an append line by line", func(m *Memory) eventlog.Store { return &tears{m} },
			[]string{"batch/visible all or none"}},
		{"forgets a missing session", func(m *Memory) eventlog.Store { return &emptyForMissing{m} },
			[]string{"store/missing session"}},
		{"ignores contexts", func(m *Memory) eventlog.Store { return &deaf{m} },
			[]string{"store/ended context", "span/cancelled on the way", "cancel/waiting for the store lock", "ability/lock excludes"}},
		{"keeps the caller's bytes", func(m *Memory) eventlog.Store { return &keepsBytes{Memory: m} },
			[]string{"store/keeps its own copy"}},
		{"normalises lines", func(m *Memory) eventlog.Store { return &normalises{m} },
			[]string{"store/lines of any shape"}},
		{"reads what comes meanwhile", func(m *Memory) eventlog.Store { return &readsOn{m} },
			[]string{"span/consistent with the head at its start", "read/consistent with the head at its start"}},
		{"ignores bounds", func(m *Memory) eventlog.Store { return &unbounded{m} },
			[]string{"span/selects", "read/ranges"}},
		{"leaks readers", func(m *Memory) eventlog.Store { return &leaks{m} },
			[]string{"close/leaves nothing running"}},
		{"never changes its version", func(m *Memory) eventlog.Store { return &frozen{m} },
			[]string{"ability/version tells changes", "ability/version sees other handles"}},
		{"loses big blobs' ends", func(m *Memory) eventlog.Store { return &shortBlobs{m} },
			[]string{"blob/put and open", "size/an append over 4 MiB"}},
		{"does not erase", func(m *Memory) eventlog.Store { return &keepsErased{m} },
			[]string{"ability/rewrite", "redact/content is gone"}},
		{"removes nothing", func(m *Memory) eventlog.Store { return &keepsRemoved{m} },
			[]string{"ability/remove compares the head", "remove/is gone"}},
		{"keeps garbage", func(m *Memory) eventlog.Store { return &keepsGarbage{m} },
			[]string{"garbage/what nobody needs goes", "garbage/shared by two sessions", "redact/blobs"}},
		{"sweeps too much", func(m *Memory) eventlog.Store { return &sweepsAll{m} },
			[]string{"garbage/what nobody needs goes"}},
		{"forgets when blobs are put again", func(m *Memory) eventlog.Store { return &neverRenews{Memory: m} },
			[]string{"garbage/grace"}},
		{"works after Close", func(m *Memory) eventlog.Store { return &undead{m} },
			[]string{"close/closed store"}},
		{"lists in any order", func(m *Memory) eventlog.Store { return &lists{m} },
			[]string{"listing/rows", "listing/many"}},
		{"mixes case", func(m *Memory) eventlog.Store { return &mixesCase{m} },
			[]string{"hostile/ids that are almost equal"}},
		{"passes over damage", func(m *Memory) eventlog.Store { return &passesOver{m} },
			[]string{"damage/is located", "damage/newer version"}},
	}
}

// TestBrokenStores makes sure that the suite can fail: each way of breaking a
// store is noticed by the promises that are about it.
func TestBrokenStores(t *testing.T) {
	for _, b := range brokenStores() {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range b.notices {
				c := caseNamed(t, name)
				if fails := attempt(t, c, openBroken(b.wrap)); !fails {
					t.Errorf("%s: not noticed by %q", b.name, name)
				}
			}
		})
	}
}

// TestLackingStores makes sure that a store that says what it lacks passes,
// and that one that does not say it fails.
func TestLackingStores(t *testing.T) {
	plain := func(lacks ...Need) Opener {
		return func(testing.TB) Harness {
			m := NewMemory()
			return Harness{Lacks: lacks, Open: func() (eventlog.Store, error) { return bare{m.Handle()}, nil }}
		}
	}
	all := []Need{Handles, ReadOnly, Blobs, Locker, Rewriter, Remover, Versioner, Syncer, Sweeper, Salvager, Replacer, Damage}
	Run(t, plain(all...))
	abilities := caseNamed(t, "harness/lacks what it says")
	for i := range all[1:] {
		if fails := attempt(t, abilities, plain(slices.Delete(slices.Clone(all), i+1, i+2)...)); !fails {
			t.Errorf("the suite does not notice that the store lacks %s", all[i+1])
		}
	}
	if fails := attempt(t, abilities, func(t testing.TB) Harness {
		h := openMemory(t)
		h.Lacks = []Need{Blobs}
		return h
	}); !fails {
		t.Errorf("the suite does not notice an ability that the store is said to lack")
	}
}

// TestNames makes sure that promises have names of their own, and say what they promise.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range groups() {
		for _, c := range g.cases {
			if name := g.name + "/" + c.name; seen[name] || len(c.explanation) < 20 || !strings.HasSuffix(c.explanation, ".") {
				t.Errorf("promise %q: its name is taken, or its explanation is none: %q", name, c.explanation)
			} else {
				seen[name] = true
			}
		}
	}
}

func caseNamed(t *testing.T, name string) testCase {
	t.Helper()
	for _, g := range groups() {
		for _, c := range g.cases {
			if g.name+"/"+c.name == name {
				return c
			}
		}
	}
	t.Fatalf("there is no promise %q", name)
	return testCase{}
}

func openBroken(wrap func(m *Memory) eventlog.Store) Opener {
	return func(testing.TB) Harness {
		m := NewMemory()
		return Harness{
			Open:         func() (eventlog.Store, error) { return wrap(m.Handle()), nil },
			OpenReadOnly: func() (eventlog.Store, error) { return wrap(m.ReadOnly()), nil },
			Damage:       m.Damage,
		}
	}
}

// attempt tests a promise without failing t, and says whether it failed.
func attempt(t *testing.T, c testCase, open Opener) bool {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.check(r, open, 3*time.Second)
	}()
	<-done
	return r.failed
}

// recorder takes the failures of a promise for itself.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Logf(string, ...any)   {}
func (r *recorder) Failed() bool          { return r.failed }
func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	runtime.Goexit()
}

type dropsLast struct{ *Memory }

func (s *dropsLast) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	if len(events) > 1 {
		events = events[:len(events)-1]
	}
	return s.Memory.Append(ctx, session, expect, events, durable)
}

type acceptsStale struct{ *Memory }

func (s *acceptsStale) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	actual := eventlog.Head{}
	for e, err := range s.Memory.Read(ctx, session, eventlog.Span{Backward: true, Limit: 1}) {
		if err == nil {
			actual = e.Head()
		}
	}
	if !expect.IsZero() {
		expect = actual
	}
	return s.Memory.Append(ctx, session, expect, events, durable)
}

type reorders struct{ *Memory }

func (s *reorders) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	events = slices.Clone(events)
	slices.Reverse(events)
	return s.Memory.Append(ctx, session, expect, events, durable)
}

type tears struct{ *Memory }

func (s *tears) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	for i := range events {
		if err := s.Memory.Append(ctx, session, expect, events[i:i+1], durable); err != nil {
			return err
		}
		expect = events[i].Head()
		runtime.Gosched()
	}
	return nil
}

type emptyForMissing struct{ *Memory }

func (s *emptyForMissing) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	if _, err := s.Version(ctx, session); err != nil {
		return sequence(nil)
	}
	return s.Memory.Read(ctx, session, r)
}

type deaf struct{ *Memory }

func (s *deaf) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	return s.Memory.Append(context.WithoutCancel(ctx), session, expect, events, durable)
}

func (s *deaf) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return s.Memory.Read(context.WithoutCancel(ctx), session, r)
}

func (s *deaf) Lock(context.Context, bool) (func(), error) { return func() {}, nil }

// keepsBytes shares the caller's lines of the last append.
type keepsBytes struct {
	*Memory
	kept []eventlog.Event
}

func (s *keepsBytes) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	err := s.Memory.Append(ctx, session, expect, events, durable)
	if err == nil {
		s.kept = events
	}
	return err
}

func (s *keepsBytes) Read(context.Context, string, eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return sequence(s.kept)
}

type normalises struct{ *Memory }

func (s *normalises) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	events = slices.Clone(events)
	for i := range events {
		line := strings.ReplaceAll(strings.Replace(string(events[i].Line()), "{ ", "{", 1), "  ", "")
		events[i] = parsed(strings.TrimSuffix(line, " }")+strings.Repeat("}", strings.Count(line, " }")), session)
	}
	return s.Memory.Append(ctx, session, expect, events, durable)
}

type readsOn struct{ *Memory }

func (s *readsOn) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	if r.Backward || r.Limit > 0 {
		return s.Memory.Read(ctx, session, r)
	}
	return func(yield func(eventlog.Event, error) bool) {
		for seq := max(r.From, 1); r.To == 0 || seq <= r.To; seq++ {
			found := false
			for e, err := range s.Memory.Read(ctx, session, eventlog.Span{From: seq, Limit: 1}) {
				if found = err == nil; !yield(e, err) {
					return
				}
			}
			if !found {
				return
			}
		}
	}
}

type unbounded struct{ *Memory }

func (s *unbounded) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	r.To = 0
	return s.Memory.Read(ctx, session, r)
}

// leaks reads in a goroutine that waits for ever when it is stopped early.
type leaks struct{ *Memory }

func (s *leaks) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return func(yield func(eventlog.Event, error) bool) {
		events := make(chan eventlog.Event)
		go func() {
			defer close(events)
			for e := range s.Memory.Read(ctx, session, r) {
				events <- e
			}
		}()
		for e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

type frozen struct{ *Memory }

func (s *frozen) Version(ctx context.Context, session string) (uint64, error) {
	_, err := s.Memory.Version(ctx, session)
	return 7, err
}

type shortBlobs struct{ *Memory }

func (s *shortBlobs) OpenBlob(ctx context.Context, d eventlog.Digest) (io.ReadCloser, error) {
	r, err := s.Memory.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.LimitReader(r, 4096)), nil
}

type keepsErased struct{ *Memory }

func (s *keepsErased) Rewrite(ctx context.Context, session string, expect eventlog.Head, _, add []eventlog.Event) error {
	return s.Memory.Rewrite(ctx, session, expect, nil, add)
}

type keepsRemoved struct{ *Memory }

func (s *keepsRemoved) RemoveSession(context.Context, string, eventlog.Head) error { return nil }

type keepsGarbage struct{ *Memory }

func (s *keepsGarbage) RemoveBlobs(context.Context, []eventlog.Digest) error { return nil }

type sweepsAll struct{ *Memory }

func (s *sweepsAll) RemoveBlobs(ctx context.Context, _ []eventlog.Digest) error {
	for info, err := range s.ListBlobs(ctx) {
		if err := errors.Join(err, s.RemoveBlob(ctx, info.Digest)); err != nil {
			return err
		}
	}
	return nil
}

// neverRenews keeps the time at which a blob was put first.
type neverRenews struct {
	*Memory
	first time.Time
}

func (s *neverRenews) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		for info, err := range s.Memory.ListBlobs(ctx) {
			if s.first.IsZero() {
				s.first = info.Written
			}
			info.Written = s.first
			if !yield(info, err) {
				return
			}
		}
	}
}

type undead struct{ *Memory }

func (s *undead) Close() error { return nil }

type lists struct{ *Memory }

func (s *lists) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		infos, err := collect(s.Memory.Sessions(ctx))
		for _, info := range slices.Backward(infos) {
			if !yield(info, nil) {
				return
			}
		}
		if err != nil {
			yield(eventlog.SessionInfo{}, fmt.Errorf("list: %w", err))
		}
	}
}

type mixesCase struct{ *Memory }

func (s *mixesCase) Append(ctx context.Context, session string, expect eventlog.Head, events []eventlog.Event, durable bool) error {
	return s.Memory.Append(ctx, strings.ToLower(session), expect, events, durable)
}

func (s *mixesCase) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	return s.Memory.Read(ctx, strings.ToLower(session), r)
}

// passesOver shows what stands around a damaged line as if that was all.
type passesOver struct{ *Memory }

func (s *passesOver) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[eventlog.Event, error] {
	var events []eventlog.Event
	for seq := int64(1); seq < 100; seq++ {
		for e, err := range s.Memory.Read(ctx, session, eventlog.Span{From: seq, To: seq}) {
			if err == nil && e.Seq >= r.From && (r.To == 0 || e.Seq <= r.To) {
				events = append(events, e)
			}
		}
	}
	if r.Backward {
		slices.Reverse(events)
	}
	if r.Limit > 0 {
		events = events[:min(r.Limit, len(events))]
	}
	return sequence(events)
}

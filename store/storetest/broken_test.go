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

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// broken is a way of breaking a store, and promises that must notice.
type broken struct {
	name    string
	wrap    func(m *memory.Store) eventlog.Store
	notices []string
}

func brokenStores() []broken {
	return []broken{
		{"drops the last line", func(m *memory.Store) eventlog.Store { return &dropsLast{m} },
			[]string{"store/append and read back", "append/read back", "race/nothing lost with Any"}},
		{"accepts stale heads", func(m *memory.Store) eventlog.Store { return &acceptsStale{m} },
			[]string{"store/compares the head", "store/one writer wins", "handles/stale memory", "race/one winner at a head across handles"}},
		{"reorders a batch", func(m *memory.Store) eventlog.Store { return &reorders{m} },
			[]string{"store/append and read back", "append/read back", "race/nothing lost with Any"}},
		{"writes an append line by line", func(m *memory.Store) eventlog.Store { return &tears{m} },
			[]string{"batch/visible all or none"}},
		{"forgets a missing session", func(m *memory.Store) eventlog.Store { return &emptyForMissing{m} },
			[]string{"store/missing session"}},
		{"ignores contexts", func(m *memory.Store) eventlog.Store { return &deaf{m} },
			[]string{"store/ended context", "span/cancelled on the way", "cancel/waiting for the store lock", "ability/lock excludes"}},
		{"keeps the caller's bytes", func(m *memory.Store) eventlog.Store { return &keepsBytes{Store: m} },
			[]string{"store/keeps its own copy"}},
		{"normalises lines", func(m *memory.Store) eventlog.Store { return &normalises{m} },
			[]string{"store/lines of any shape"}},
		{"reads what comes meanwhile", func(m *memory.Store) eventlog.Store { return &readsOn{m} },
			[]string{"span/consistent with the head at its start", "read/consistent with the head at its start"}},
		{"ignores bounds", func(m *memory.Store) eventlog.Store { return &unbounded{m} },
			[]string{"span/selects", "read/ranges"}},
		{"leaks readers", func(m *memory.Store) eventlog.Store { return &leaks{m} },
			[]string{"close/leaves nothing running"}},
		{"never changes its version", func(m *memory.Store) eventlog.Store { return &frozen{m} },
			[]string{"ability/version tells changes", "ability/version sees other handles"}},
		{"loses big blobs' ends", func(m *memory.Store) eventlog.Store { return &shortBlobs{m} },
			[]string{"blob/put and open", "size/an append over 4 MiB"}},
		{"does not erase", func(m *memory.Store) eventlog.Store { return &keepsErased{m} },
			[]string{"ability/rewrite", "redact/content is gone"}},
		{"removes nothing", func(m *memory.Store) eventlog.Store { return &keepsRemoved{m} },
			[]string{"ability/remove compares the head", "remove/is gone"}},
		{"keeps garbage", func(m *memory.Store) eventlog.Store { return &keepsGarbage{m} },
			[]string{"garbage/what nobody needs goes", "garbage/shared by two sessions", "redact/blobs"}},
		{"sweeps too much", func(m *memory.Store) eventlog.Store { return &sweepsAll{m} },
			[]string{"garbage/what nobody needs goes"}},
		{"forgets when blobs are put again", func(m *memory.Store) eventlog.Store { return &neverRenews{Store: m} },
			[]string{"garbage/grace"}},
		{"works after Close", func(m *memory.Store) eventlog.Store { return &undead{m} },
			[]string{"close/closed store"}},
		{"lists in any order", func(m *memory.Store) eventlog.Store { return &lists{m} },
			[]string{"listing/rows", "listing/many"}},
		{"mixes case", func(m *memory.Store) eventlog.Store { return &mixesCase{m} },
			[]string{"hostile/ids that are almost equal"}},
		{"passes over damage", func(m *memory.Store) eventlog.Store { return &passesOver{m} },
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
			m := memory.New()
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

func openBroken(wrap func(m *memory.Store) eventlog.Store) Opener {
	return func(testing.TB) Harness {
		m := memory.New()
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

type dropsLast struct{ *memory.Store }

func (s *dropsLast) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	if len(events) > 1 {
		events = events[:len(events)-1]
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

type acceptsStale struct{ *memory.Store }

func (s *acceptsStale) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	actual := event.Head{}
	for e, err := range s.Store.Read(ctx, session, eventlog.Span{Backward: true, Limit: 1}) {
		if err == nil {
			actual = e.Head()
		}
	}
	if !expect.IsZero() {
		expect = actual
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

type reorders struct{ *memory.Store }

func (s *reorders) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	events = slices.Clone(events)
	slices.Reverse(events)
	return s.Store.Append(ctx, session, expect, events, durable)
}

type tears struct{ *memory.Store }

func (s *tears) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	for i := range events {
		if err := s.Store.Append(ctx, session, expect, events[i:i+1], durable); err != nil {
			return err
		}
		expect = events[i].Head()
		runtime.Gosched()
	}
	return nil
}

type emptyForMissing struct{ *memory.Store }

func (s *emptyForMissing) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	if _, err := s.Version(ctx, session); err != nil {
		return sequence(nil)
	}
	return s.Store.Read(ctx, session, r)
}

type deaf struct{ *memory.Store }

func (s *deaf) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	return s.Store.Append(context.WithoutCancel(ctx), session, expect, events, durable)
}

func (s *deaf) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return s.Store.Read(context.WithoutCancel(ctx), session, r)
}

func (s *deaf) Lock(ctx context.Context, _ bool) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

// keepsBytes shares the caller's lines of the last append.
type keepsBytes struct {
	*memory.Store
	kept []event.Event
}

func (s *keepsBytes) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	err := s.Store.Append(ctx, session, expect, events, durable)
	if err == nil {
		s.kept = events
	}
	return err
}

func (s *keepsBytes) Read(context.Context, string, eventlog.Span) iter.Seq2[event.Event, error] {
	return sequence(s.kept)
}

type normalises struct{ *memory.Store }

func (s *normalises) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	events = slices.Clone(events)
	for i := range events {
		line := strings.ReplaceAll(strings.Replace(string(events[i].Line()), "{ ", "{", 1), "  ", "")
		events[i] = parsed(strings.TrimSuffix(line, " }")+strings.Repeat("}", strings.Count(line, " }")), session)
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

type readsOn struct{ *memory.Store }

func (s *readsOn) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	if r.Backward || r.Limit > 0 {
		return s.Store.Read(ctx, session, r)
	}
	return func(yield func(event.Event, error) bool) {
		for seq := max(r.From, 1); r.To == 0 || seq <= r.To; seq++ {
			found := false
			for e, err := range s.Store.Read(ctx, session, eventlog.Span{From: seq, Limit: 1}) {
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

type unbounded struct{ *memory.Store }

func (s *unbounded) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	r.To = 0
	return s.Store.Read(ctx, session, r)
}

// leaks reads in a goroutine that waits for ever when it is stopped early.
type leaks struct{ *memory.Store }

func (s *leaks) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		events := make(chan event.Event)
		go func() {
			defer close(events)
			for e := range s.Store.Read(ctx, session, r) {
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

type frozen struct{ *memory.Store }

func (s *frozen) Version(ctx context.Context, session string) (uint64, error) {
	_, err := s.Store.Version(ctx, session)
	return 7, err
}

type shortBlobs struct{ *memory.Store }

func (s *shortBlobs) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := s.Store.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(io.LimitReader(r, 4096)), nil
}

type keepsErased struct{ *memory.Store }

func (s *keepsErased) Rewrite(ctx context.Context, session string, expect event.Head, _, add []event.Event) error {
	return s.Store.Rewrite(ctx, session, expect, nil, add)
}

type keepsRemoved struct{ *memory.Store }

func (s *keepsRemoved) RemoveSession(context.Context, string, event.Head) error { return nil }

type keepsGarbage struct{ *memory.Store }

func (s *keepsGarbage) RemoveBlobs(context.Context, []event.Digest) error { return nil }

type sweepsAll struct{ *memory.Store }

func (s *sweepsAll) RemoveBlobs(ctx context.Context, _ []event.Digest) error {
	for info, err := range s.ListBlobs(ctx) {
		if err := errors.Join(err, s.Store.RemoveBlobs(ctx, []event.Digest{info.Digest})); err != nil {
			return err
		}
	}
	return nil
}

// neverRenews keeps the time at which a blob was put first.
type neverRenews struct {
	*memory.Store
	first time.Time
}

func (s *neverRenews) ListBlobs(ctx context.Context) iter.Seq2[eventlog.BlobInfo, error] {
	return func(yield func(eventlog.BlobInfo, error) bool) {
		for info, err := range s.Store.ListBlobs(ctx) {
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

type undead struct{ *memory.Store }

func (s *undead) Close() error { return nil }

type lists struct{ *memory.Store }

func (s *lists) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		infos, err := collect(s.Store.Sessions(ctx))
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

type mixesCase struct{ *memory.Store }

func (s *mixesCase) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	return s.Store.Append(ctx, strings.ToLower(session), expect, events, durable)
}

func (s *mixesCase) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return s.Store.Read(ctx, strings.ToLower(session), r)
}

// passesOver shows what stands around a damaged line as if that was all.
type passesOver struct{ *memory.Store }

func (s *passesOver) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	var events []event.Event
	for seq := int64(1); seq < 100; seq++ {
		for e, err := range s.Store.Read(ctx, session, eventlog.Span{From: seq, To: seq}) {
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

package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// BrokenStore is a store in memory that breaks one promise. Tests use it to check that
// promises can fail.
type BrokenStore struct {
	Name string
	wrap func(m *memory.Store) eventlog.Store
}

// BrokenStores returns stores that break one promise each.
func BrokenStores() []BrokenStore {
	return []BrokenStore{
		{"drops the last line", func(m *memory.Store) eventlog.Store { return &dropsLast{m} }},
		{"accepts stale heads", func(m *memory.Store) eventlog.Store { return &acceptsStale{m} }},
		{"reverses an append", func(m *memory.Store) eventlog.Store { return &reversesAppends{m} }},
		{"writes an append line by line", func(m *memory.Store) eventlog.Store { return &splitsAppends{m} }},
		{"reads a missing session as empty", func(m *memory.Store) eventlog.Store { return &emptyForMissing{m} }},
		{"ignores contexts", func(m *memory.Store) eventlog.Store { return &ignoresContext{m} }},
		{"keeps the caller's bytes", func(m *memory.Store) eventlog.Store { return &keepsBytes{Store: m} }},
		{"normalizes lines", func(m *memory.Store) eventlog.Store { return &normalises{m} }},
		{"reads later events", func(m *memory.Store) eventlog.Store { return &readsLater{m} }},
		{"ignores bounds", func(m *memory.Store) eventlog.Store { return &unbounded{m} }},
		{"loses rewinds", func(m *memory.Store) eventlog.Store { return &losesRewinds{m} }},
		{"leaks goroutines", func(m *memory.Store) eventlog.Store { return &leaksReaders{m} }},
		{"never changes its version", func(m *memory.Store) eventlog.Store { return &constantVersion{m} }},
		{"truncates large blobs", func(m *memory.Store) eventlog.Store { return &shortBlobs{m} }},
		{"does not erase", func(m *memory.Store) eventlog.Store { return &keepsErased{m} }},
		{"removes nothing", func(m *memory.Store) eventlog.Store { return &keepsRemoved{m} }},
		{"keeps garbage", func(m *memory.Store) eventlog.Store { return &keepsGarbage{m} }},
		{"removes used blobs", func(m *memory.Store) eventlog.Store { return &sweepsAll{m} }},
		{"keeps the first time of a blob", func(m *memory.Store) eventlog.Store { return &neverRenews{Store: m} }},
		{"keeps rows of the catalog", func(m *memory.Store) eventlog.Store { return &keepsRows{m, map[string][]byte{}} }},
		{"works after Close", func(m *memory.Store) eventlog.Store { return &ignoresClose{m} }},
		{"lists in reverse order", func(m *memory.Store) eventlog.Store { return &listsBackward{m} }},
		{"lists all for a part", func(m *memory.Store) eventlog.Store { return &listsAll{m} }},
		{"relates nothing", func(m *memory.Store) eventlog.Store { return &relatesNothing{m} }},
		{"knows no users", func(m *memory.Store) eventlog.Store { return &knowsNoUsers{m} }},
		{"ignores the case of ids", func(m *memory.Store) eventlog.Store { return &mixesCase{m} }},
		{"skips damaged lines", func(m *memory.Store) eventlog.Store { return &skipsDamage{m} }},
	}
}

// Open opens the broken store.
func (b *BrokenStore) Open(testing.TB) Harness {
	m := memory.New()
	return Harness{
		Open:         func() (eventlog.Store, error) { return b.wrap(m.Handle()), nil },
		OpenReadOnly: func() (eventlog.Store, error) { return b.wrap(m.ReadOnly()), nil },
		Damage:       m.Damage,
	}
}

// OpenMemory opens an empty store in memory.
func OpenMemory(testing.TB) Harness {
	m := memory.New()
	return Harness{
		Open:         func() (eventlog.Store, error) { return m.Handle(), nil },
		OpenReadOnly: func() (eventlog.Store, error) { return m.ReadOnly(), nil },
		Damage:       m.Damage,
	}
}

// OpenBare opens an empty store in memory without optional interfaces.
func OpenBare(testing.TB) Harness {
	m := memory.New()
	return Harness{OneHandle: true, Open: func() (eventlog.Store, error) { return BareStore{m.Handle()}, nil }}
}

// TestDetection checks that promises can fail. detections lists the promises that must
// fail for each broken store, as "group/promise".
func TestDetection[T any](t *testing.T, groups []Group[T], newEnv func(*Env) T, detections map[string][]string) {
	for _, b := range BrokenStores() {
		t.Run(b.Name, func(t *testing.T) {
			for _, name := range detections[b.Name] {
				if !Fails(t, FindCase(t, groups, name), b.Open, newEnv) {
					t.Errorf("broken store %q: promise %q does not fail", b.Name, name)
				}
			}
		})
	}
}

// TestNames checks that every promise has a unique name and an explanation that is a
// sentence.
func TestNames[T any](t *testing.T, groups []Group[T]) {
	seen := map[string]bool{}
	for _, g := range groups {
		for _, c := range g.Cases {
			if name := g.Name + "/" + c.Name; seen[name] || len(c.Explanation) < 20 || !strings.HasSuffix(c.Explanation, ".") {
				t.Errorf("promise %q: the name is not unique, or the explanation is no sentence: %q", name, c.Explanation)
			} else {
				seen[name] = true
			}
		}
	}
}

// FindCase returns the promise with a name, as "group/promise".
func FindCase[T any](t *testing.T, groups []Group[T], name string) Case[T] {
	t.Helper()
	for _, g := range groups {
		for _, c := range g.Cases {
			if g.Name+"/"+c.Name == name {
				return c
			}
		}
	}
	t.Fatalf("no promise is named %q", name)
	return Case[T]{}
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

type reversesAppends struct{ *memory.Store }

func (s *reversesAppends) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	events = slices.Clone(events)
	slices.Reverse(events)
	return s.Store.Append(ctx, session, expect, events, durable)
}

type splitsAppends struct{ *memory.Store }

func (s *splitsAppends) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	for i := range events {
		if err := s.Store.Append(ctx, session, expect, events[i:i+1], durable); err != nil {
			return err
		}
		expect = events[i].Head()
		time.Sleep(100 * time.Microsecond) // on a busy machine, too, readers come in between
	}
	return nil
}

type emptyForMissing struct{ *memory.Store }

func (s *emptyForMissing) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	if _, err := s.Version(ctx, session); err != nil {
		return Sequence(nil)
	}
	return s.Store.Read(ctx, session, r)
}

type ignoresContext struct{ *memory.Store }

func (s *ignoresContext) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	return s.Store.Append(context.WithoutCancel(ctx), session, expect, events, durable)
}

func (s *ignoresContext) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return s.Store.Read(context.WithoutCancel(ctx), session, r)
}

func (s *ignoresContext) Lock(ctx context.Context, _ bool) (context.Context, func(), error) {
	return ctx, func() {}, nil
}

// keepsBytes keeps a reference to the caller's lines of the last append.
type keepsBytes struct {
	*memory.Store
	events []event.Event
}

func (s *keepsBytes) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	err := s.Store.Append(ctx, session, expect, events, durable)
	if err == nil {
		s.events = events
	}
	return err
}

func (s *keepsBytes) Read(context.Context, string, eventlog.Span) iter.Seq2[event.Event, error] {
	return Sequence(s.events)
}

type normalises struct{ *memory.Store }

func (s *normalises) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	events = slices.Clone(events)
	for i := range events {
		line := strings.ReplaceAll(strings.Replace(string(events[i].Line()), "{ ", "{", 1), "  ", "")
		events[i] = MustParse(strings.TrimSuffix(line, " }")+strings.Repeat("}", strings.Count(line, " }")), session)
	}
	return s.Store.Append(ctx, session, expect, events, durable)
}

type readsLater struct{ *memory.Store }

func (s *readsLater) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
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

// losesRewinds leaves out head_moved events of later versions.
type losesRewinds struct{ *memory.Store }

func (s *losesRewinds) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range s.Store.Read(ctx, session, r) {
			if r.Snapshots && e.Type == "head_moved/2" {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// leaksReaders reads in a goroutine that blocks for ever when the caller stops early.
type leaksReaders struct{ *memory.Store }

func (s *leaksReaders) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
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

type constantVersion struct{ *memory.Store }

func (s *constantVersion) Version(ctx context.Context, session string) (uint64, error) {
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

// neverRenews reports the time of the first put for every blob.
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

type ignoresClose struct{ *memory.Store }

func (s *ignoresClose) Close() error { return nil }

type listsBackward struct{ *memory.Store }

func (s *listsBackward) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		infos, err := Collect(s.Store.Sessions(ctx))
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

// skipsDamage returns the lines around a damaged line without an error.
type skipsDamage struct{ *memory.Store }

func (s *skipsDamage) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
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
	return Sequence(events)
}

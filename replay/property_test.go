package replay_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/replay"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// forest is a random log and the active paths after each event.
type forest struct {
	log   *eventlog.Log
	names []string
	heads map[string]int64
	// paths maps sessions and heads to active paths.
	paths map[string]map[int64][]string
}

// grow appends, moves heads and forks at random.
func grow(r *rapid.T, log *eventlog.Log) *forest {
	f := &forest{log: log, heads: map[string]int64{}, paths: map[string]map[int64][]string{}}
	f.add(r, "s0", said(r, "begin"))
	for range rapid.IntRange(0, 25).Draw(r, "steps") {
		name := rapid.SampledFrom(f.names).Draw(r, "session")
		switch rapid.IntRange(0, 5).Draw(r, "step") {
		case 0:
			f.fork(r, name, rapid.Int64Range(0, f.heads[name]).Draw(r, "fork point"))
		case 1, 2:
			f.add(r, name, moved(r, rapid.Int64Range(0, f.heads[name]).Draw(r, "to")))
		default:
			f.add(r, name, said(r, fmt.Sprint("more of ", name)))
		}
	}
	return f
}

func (f *forest) add(r *rapid.T, name string, e event.Event) {
	f.note(r, name, appended(r, f.log, name, e).Seq)
}

func (f *forest) fork(r *rapid.T, parent string, seq int64) {
	name := fmt.Sprint("s", len(f.names))
	forked(r, f.log, name, parent, seq)
	f.note(r, name, seq+1)
	for before, path := range f.paths[parent] {
		if before <= seq {
			f.paths[name][before] = path
		}
	}
}

// note saves the path of a session at its new head.
func (f *forest) note(r *rapid.T, name string, head int64) {
	if f.heads[name] = head; f.paths[name] == nil {
		f.names = append(f.names, name)
		f.paths[name] = map[int64][]string{}
	}
	f.paths[name][head] = places(all(r, f.log.Read(context.Background(), name, eventlog.All().OnPath())))
}

// A replay of a random log yields the events of the log.
func TestRandomLogs(t *testing.T) {
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				log := eventlog.Open(open(t.TempDir()))
				defer func() { _ = log.Close() }()
				f := grow(r, log)
				for _, session := range f.names {
					activePathEqualsTheLog(r, f, session)
					untilYieldsTheEarlierPath(r, f, session)
					exportCarriesTheLineage(r, f, session)
				}
			})
		})
	}
}

func same(r *rapid.T, what string, want, got []string) {
	r.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		r.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// ActivePath of a lineage equals Log.ActivePath, in both directions.
func activePathEqualsTheLog(r *rapid.T, f *forest, session string) {
	ctx := context.Background()
	want := places(all(r, f.log.Read(ctx, session, eventlog.All().OnPath())))
	opts := replay.Options{Session: session}
	same(r, "forward", want, places(all(r, replay.ActivePath(f.log.Read(ctx, session, eventlog.All()), opts))))
	opts.Whole = true
	same(r, "told apart", want, places(all(r, replay.Check(f.log.Read(ctx, session, eventlog.All().OnPath()), opts))))
	opts.Path = true
	same(r, "checked", want, places(all(r, replay.Check(f.log.Read(ctx, session, eventlog.All().OnPath()), opts))))
	opts.Path, opts.Backward = false, true
	back := places(all(r, replay.ActivePath(f.log.Read(ctx, session, eventlog.All().Backward()), opts)))
	slices.Reverse(back)
	same(r, "backward", want, back)
}

// A replay until an event yields the path as of that event.
func untilYieldsTheEarlierPath(r *rapid.T, f *forest, session string) {
	lineage := all(r, f.log.Read(context.Background(), session, eventlog.All()))
	for _, e := range lineage {
		want := f.paths[session][e.Seq]
		bySeq := replay.Replayer[int]{UntilSeq: e.Seq, ActiveOnly: true}
		same(r, fmt.Sprint("until seq ", e.Seq), want, places(all(r, bySeq.Events(replay.Of(lineage...)))))
		byID := replay.Replayer[int]{UntilEvent: e.ID, ActiveOnly: true}
		same(r, fmt.Sprint("until event ", e.ID), want, places(all(r, byID.Events(replay.Of(lineage...)))))
	}
}

// An export of a session carries the lineage of the session.
func exportCarriesTheLineage(r *rapid.T, f *forest, session string) {
	ctx := context.Background()
	var text bytes.Buffer
	if err := transfer.Export(ctx, f.log, &text, session); err != nil {
		r.Fatalf("export: %v", err)
	}
	log := eventlog.Open(memory.New())
	defer func() { _ = log.Close() }()
	if _, err := transfer.Import(ctx, log, &text); err != nil {
		r.Fatalf("import: %v", err)
	}
	want := places(all(r, f.log.Read(ctx, session, eventlog.All())))
	same(r, "exported", want, places(all(r, log.Read(ctx, session, eventlog.All()))))
}

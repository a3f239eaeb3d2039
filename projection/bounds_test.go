package projection_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// counted counts the events and bytes read from a store. A redaction reads several sessions at
// once.
type counted struct {
	eventlog.Store
	eventlog.Blobs
	events, bytes int64 // of lines, newlines included
	bodies        int64 // bytes of blobs
}

func countReads(s eventlog.Store) *counted {
	blobs, _ := eventlog.As[eventlog.Blobs](s)
	return &counted{Store: s, Blobs: blobs}
}

func (c *counted) Unwrap() eventlog.Store { return c.Store }

func (c *counted) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.Store.Read(ctx, session, r) {
			if err == nil {
				atomic.AddInt64(&c.events, 1)
				atomic.AddInt64(&c.bytes, int64(len(e.Line()))+1)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (c *counted) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := c.Blobs.OpenBlob(ctx, d)
	if err != nil {
		return nil, err
	}
	return countedBody{r, c}, nil
}

type countedBody struct {
	io.ReadCloser
	c *counted
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	atomic.AddInt64(&b.c.bodies, int64(n))
	return n, err
}

func (c *counted) reset() { c.events, c.bytes, c.bodies = 0, 0, 0 }

// onCounted runs a test on a log of each backend that counts what it reads.
func onCounted(t *testing.T, f func(t *testing.T, g *garden.Garden, reads *counted)) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			reads := countReads(open(t.TempDir()))
			log := eventlog.Open(reads)
			defer func() { _ = log.Close() }()
			f(t, &garden.Garden{T: t, Log: log}, reads)
		})
	}
}

// A load reads the newest usable snapshot and the tail, for the path and for the
// session, and no other event.
func TestALoadReadsTheNewestSnapshotAndItsTail(t *testing.T) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				reads := countReads(open(t.TempDir()))
				log := eventlog.Open(reads)
				defer func() { _ = log.Close() }()
				g := garden.Plant(r, log, garden.DrawScript.Draw(r, "script"))
				for _, name := range g.Names {
					lineage := g.Lineage(name)
					for at := int64(1); at <= int64(len(lineage)); at++ {
						checkReads(g, reads, name, at, lineage)
					}
				}
			})
		})
	}
}

func checkReads(g *garden.Garden, reads *counted, name string, at int64, lineage []event.Event) {
	g.T.Helper()
	events, bytes := needed(g, lineage[:at])
	reads.reset()
	want, explain := g.Load(name, projection.Options{At: at})
	if explain.Events != events || explain.Bytes != bytes {
		g.T.Fatalf("%s at %d: read %d events, %d bytes; needed %d, %d", name, at, explain.Events, explain.Bytes, events, bytes)
	}
	// A load also reads event At and, in a fork, the first events of sessions.
	extra := int64(1)
	if depth := len(ancestors(g, name)); depth > 0 {
		extra += int64((depth + 1) * (len(moves(lineage[:at])) + 2))
	}
	reads.reset()
	g.Load(name, projection.Options{At: at})
	if reads.events < events || reads.events > events+extra {
		g.T.Fatalf("%s at %d: the store read %d events, needed %d and at most %d more", name, at, reads.events, events, extra)
	}
	twice, explain := g.Load(name, projection.Buffered(projection.Options{At: at}, 1))
	garden.Same(g.T, "read twice", want, twice)
	if explain.Events < events || explain.Events > 2*events {
		g.T.Fatalf("%s at %d: read %d events without memory, needed %d", name, at, explain.Events, events)
	}
}

// needed counts the events and bytes that a load of allTraces must read, without a
// load.
func needed(g *garden.Garden, lineage []event.Event) (events, bytes int64) {
	g.T.Helper()
	onPath := g.Path(lineage)
	pathBase := min(base(g, "test:path", lineage, onPath), base(g, "test:tally", lineage, onPath))
	sessionBase := base(g, "test:session", lineage, nil)
	for _, e := range lineage {
		if e.Seq > sessionBase || e.Seq > pathBase && onPath[e.Seq] {
			events++
			bytes += int64(len(e.Line())) + 1
		}
	}
	return events, bytes
}

// moves are the head_moved events.
func moves(lineage []event.Event) (seqs []int64) {
	for _, e := range lineage {
		if e.Type.Name() == event.HeadMoved {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// base is the event that the newest snapshot with a part covers; 0 if there is none.
// If onPath is not nil, the snapshot is on the path.
func base(g *garden.Garden, part string, lineage []event.Event, onPath map[int64]bool) (covers int64) {
	g.T.Helper()
	for _, e := range lineage {
		if e.Type.Name() != event.ProjectionSnapshotted || e.Redacted() || onPath != nil && !onPath[e.Seq] {
			continue
		}
		s, _, err := event.Decode[event.Snapshot](&e)
		g.Allow(err)
		var parts map[string]any
		if s.State != nil {
			g.Allow(json.Unmarshal(s.State, &parts))
		}
		if _, ok := parts[part]; ok {
			covers = s.Seq
		}
	}
	return covers
}

// bulk makes a session of n messages.
func bulk(g *garden.Garden, name string, n int) {
	g.T.Helper()
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.UserMessage(fmt.Sprint("message ", i))
	}
	g.Append(name, events...)
}

// A load of a longer session reads no more events.
func TestALoadOfALongSessionReadsItsEndOnly(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
		bulk(g, "long", 3000)
		g.Snapshot("long", garden.AllTraces, true)
		bulk(g, "long", 5)
		reads.reset()
		_, explain := g.Load("long", projection.Options{})
		if explain.Events != 6 || reads.events != 7 {
			t.Errorf("read %d events, the store %d; want 6 and the head", explain.Events, reads.events)
		}
		if state := explain.BodyBytes; state < 50_000 || reads.bodies != state {
			t.Errorf("%d bytes of bodies are reported, the store read %d", state, reads.bodies)
		}
	})
}

// A load reads only the parts of a body that it needs.
func TestALoadReadsItsOwnPartsOnly(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
		bulk(g, "s", 300)
		g.Snapshot("s", garden.AllTraces, true)
		reads.reset()
		_, err := projection.Load(garden.Bg, g.Log, "s", garden.Tally)
		g.Allow(err)
		if reads.bodies != 0 || reads.events != 2 {
			t.Errorf("read %d bytes of bodies and %d events for a small state", reads.bodies, reads.events)
		}
		view, err := projection.Load(garden.Bg, g.Log, "s", garden.PathTrace)
		g.Allow(err)
		state, err := json.Marshal(view.State)
		g.Allow(err)
		if reads.bodies != int64(len(state)) || view.Explain.BodyBytes != reads.bodies {
			t.Errorf("read %d bytes of bodies (%d reported), the state has %d", reads.bodies, view.Explain.BodyBytes, len(state))
		}
	})
}

// A load of a deep fork reads only the ancestors that contain its tail.
func TestALoadOfADeepForkReadsItsTailOnly(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
		const depth = 80
		bulk(g, "f0", 3)
		for i := range depth {
			_, err := fork.At(garden.Bg, g.Log, fmt.Sprint("f", i), fork.Head(), fork.Options{ID: fmt.Sprint("f", i+1)})
			g.Allow(err)
			bulk(g, fmt.Sprint("f", i+1), 2)
			if i == depth-4 {
				g.Snapshot(fmt.Sprint("f", i+1), garden.AllTraces, true)
			}
		}
		reads.reset()
		_, explain := g.Load(fmt.Sprint("f", depth), projection.Options{})
		if explain.Events != 10 { // three forks with two messages each, and the snapshot
			t.Errorf("read %d events", explain.Events)
		}
		if reads.events > 10+1+2*4 {
			t.Errorf("the store read %d events for 10", reads.events)
		}
	})
}

// A load of a path reads no orphaned events; a load of the session does.
func TestALoadSkipsOrphanedEvents(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
		bulk(g, "s", 10)
		g.Snapshot("s", projection.Of("", garden.PathTrace), true) // 11
		for range 20 {
			bulk(g, "s", 30)
			g.Append("s", event.New(event.HeadMove{To: 11}))
		}
		bulk(g, "s", 2)
		reads.reset()
		view, err := projection.Load(garden.Bg, g.Log, "s", garden.PathTrace)
		g.Allow(err)
		if view.Explain.Events != 4 || reads.events != 5 { // two messages, the last move, the snapshot; and the head
			t.Errorf("read %d events, the store %d", view.Explain.Events, reads.events)
		}
		if n := len(view.State.Seen); n != 13 {
			t.Errorf("the path has %d events", n)
		}
	})
}

// A tail that is larger than the buffer is read twice, with the same result.
func TestALongTailIsReadTwice(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
		bulk(g, "s", 5)
		g.Snapshot("s", garden.AllTraces, true)
		text := strings.Repeat("x", 100_000)
		for range 90 { // 9 MB
			g.Append("s", event.UserMessage(text))
		}
		reads.reset()
		got, explain := g.Load("s", projection.Options{})
		if explain.Events != 2*91 || reads.events != 2*91+1 { // the snapshot and 90 messages
			t.Errorf("read %d events, the store %d", explain.Events, reads.events)
		}
		want, _ := g.Load("s", projection.Buffered(projection.Options{}, math.MaxInt))
		garden.Same(t, "states", want, got)
	})
}

package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var storeCases = []testCase{
	{
		name:        "append and read back",
		explanation: "Lines are kept verbatim: what is read is byte for byte what was appended, in order.",
		run:         testStoreRoundTrip,
	},
	{
		name:        "keeps its own copy",
		explanation: "A store does not keep the caller's bytes: they may be reused once Append has returned.",
		run:         testStoreCopies,
	},
	{
		name:        "lines of any shape",
		explanation: "Lines with white space, another member order or unknown members are kept verbatim.",
		run:         testStoreVerbatim,
	},
	{
		name:        "compares the head",
		explanation: "Append compares the expected head, seq and hash both, and names the actual one; nothing is written on a mismatch.",
		run:         testStoreCompares,
	},
	{
		name:        "zero head is an absent session",
		explanation: "The zero head means that the session must not exist, and any other that it must.",
		run:         testStoreZeroHead,
	},
	{
		name:        "missing session",
		explanation: "Reading a session that does not exist is ErrNotFound, whatever the span; it is not an empty sequence.",
		run:         testStoreMissing,
	},
	{
		name:        "one writer wins",
		explanation: "Of writers racing at one head exactly one wins; the others get a ConflictError that names the winner's head.",
		run:         testStoreRace,
	},
	{
		name:        "starts at any seq",
		explanation: "A session's first event may have any seq: a fork's own events begin behind its parent's.",
		run:         testStoreLateStart,
	},
	{
		name:        "ended context",
		explanation: "Every method honours a context that has ended, with its error, and writes nothing.",
		run:         testStoreEndedContext,
	},
	{
		name:        "session is not a path",
		explanation: "Asking for a session by a hostile id gives an error, and never touches anything outside the store.",
		run:         testStoreHostile,
	},
}

// put appends finished events and ends the test if that fails.
func (t *env) put(s eventlog.Store, expect event.Head, events []event.Event) event.Head {
	t.Helper()
	if err := s.Append(t.ctx, events[0].SessionID, expect, events, false); err != nil {
		t.Fatalf("append %d lines at %v: %v", len(events), expect, err)
	}
	return headOf(events)
}

// span reads finished events.
func (t *env) span(s eventlog.Store, session string, r eventlog.Span) []event.Event {
	t.Helper()
	events, err := collect(s.Read(t.ctx, session, r))
	if err != nil {
		t.Fatalf("read %q %+v: %v", session, r, err)
	}
	return events
}

func testStoreRoundTrip(t *env) {
	s := t.store()
	var want []string
	head := event.Head{}
	for n := range 5 {
		batch := batchAfter("a", head, n+1)
		head = t.put(s, head, batch)
		want = append(want, linesOf(batch)...)
	}
	got := t.span(s, "a", eventlog.Span{})
	t.same("lines", want, linesOf(got))
	t.same("head", head, headOf(got))
}

func testStoreCopies(t *env) {
	s := t.store()
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 1))
	batch := batchAfter("a", head, 3)
	want := linesOf(batch)
	t.put(s, head, batch)
	for i := range batch {
		clear(batch[i].Line())
		batch[i] = event.Event{}
	}
	t.same("lines", want, linesOf(t.span(s, "a", eventlog.Span{From: 2})))
}

func testStoreVerbatim(t *env) {
	s := t.store()
	plain := chainAfter("a", event.Head{},
		line{data: `{"text":"\u00e9 \/ \"é"}`, members: `"metadata":{"n":1.0},"x-later":[1,{"deep":-0}],"y":1E400`})[0]
	text := string(plain.Line())
	loose := parsed(text[:1]+" "+text[1:17]+"  "+text[17:len(text)-1]+" }", "a")
	t.put(s, event.Head{}, []event.Event{loose})
	t.same("line", []string{string(loose.Line())}, linesOf(t.span(s, "a", eventlog.Span{})))
	t.same("line after a reopen", []string{string(loose.Line())}, t.lines(t.reopen(), "a"))
}

func testStoreCompares(t *env) {
	s := t.store()
	first := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 2))
	actual := t.put(s, first, batchAfter("a", first, 2))
	want := linesOf(t.span(s, "a", eventlog.Span{}))
	forged := actual
	forged.Hash[31] ^= 1
	for _, expect := range []event.Head{{}, first, forged, {Seq: 9, Hash: actual.Hash}, {Seq: 4}} {
		err := s.Append(t.ctx, "a", expect, batchAfter("a", expect, 1), false)
		t.conflict(err, expect, actual)
	}
	t.same("lines", want, linesOf(t.span(s, "a", eventlog.Span{})))
}

// conflict makes sure that err is a ConflictError between two heads.
func (t *env) conflict(err error, expected, actual event.Head) {
	t.Helper()
	var c *eventlog.ConflictError
	if !errors.As(err, &c) || !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("got error %v, want a ConflictError", err)
		return
	}
	if c.Expected != expected || c.Actual != actual {
		t.Errorf("the conflict says expected %v, actual %v; want %v and %v", c.Expected, c.Actual, expected, actual)
	}
}

func testStoreZeroHead(t *env) {
	s := t.store()
	elsewhere := headOf(batchAfter("a", event.Head{}, 3))
	err := s.Append(t.ctx, "a", elsewhere, batchAfter("a", elsewhere, 1), false)
	t.conflict(err, elsewhere, event.Head{})
	_, err = collect(s.Read(t.ctx, "a", eventlog.Span{}))
	t.wantErr(eventlog.ErrNotFound, err)
	t.put(s, event.Head{}, batchAfter("a", event.Head{}, 1))
}

func testStoreMissing(t *env) {
	s := t.store()
	t.put(s, event.Head{}, batchAfter("b", event.Head{}, 1))
	for _, r := range []eventlog.Span{{}, {From: 3}, {To: 3}, {Backward: true, Limit: 1}, {From: 5, To: 2}} {
		events, err := collect(s.Read(t.ctx, "a", r))
		if !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("reading %+v gave %d events and error %v, want ErrNotFound", r, len(events), err)
		}
	}
}

const racers = 16

func testStoreRace(t *env) {
	s := t.store()
	head := event.Head{}
	for round := range 40 {
		batches := make([][]event.Event, racers)
		for i := range batches {
			batches[i] = batchAfter("a", head, 1+i%3)
		}
		errs := together(racers, func(i int) error { return s.Append(t.ctx, "a", head, batches[i], false) })
		won := slices.Index(errs, nil)
		if won < 0 {
			t.Fatalf("round %d: nobody won: %v", round, errs[0])
		}
		next := headOf(batches[won])
		for i, err := range errs {
			if i != won {
				t.conflict(err, head, next)
			}
		}
		t.same("what the winner wrote", linesOf(batches[won]), linesOf(t.span(s, "a", eventlog.Span{From: head.Seq + 1})))
		head = next
	}
}

// together runs n functions at the same time and gathers their errors.
func together(n int, run func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = run(i)
		})
	}
	close(start)
	wg.Wait()
	return errs
}

func testStoreLateStart(t *env) {
	s := t.store()
	parent := headOf(batchAfter("p", event.Head{}, 41))
	events := chainAfter("f", parent, line{typ: "session_forked", data: fmt.Sprintf(
		`{"parent":"p","seq":41,"event_id":"%s","hash":"%s"}`, event.NewID(), parent.Hash)}, line{data: "1"}, line{data: "2"})
	t.put(s, event.Head{}, events)
	head := t.put(s, headOf(events), batchAfter("f", headOf(events), 2))
	t.same("seqs", []int64{42, 43, 44, 45, 46}, seqsIn(t.span(s, "f", eventlog.Span{})))
	t.same("seqs from 45", []int64{45, 46}, seqsIn(t.span(s, "f", eventlog.Span{From: 45})))
	t.same("seqs below the first", []int64{}, seqsIn(t.span(s, "f", eventlog.Span{To: 41})))
	t.same("newest", []int64{46, 45}, seqsIn(t.span(s, "f", eventlog.Span{Backward: true, Limit: 2})))
	t.same("head after a reopen", head, t.head(t.reopen(), "f"))
}

func testStoreEndedContext(t *env) {
	s := t.store()
	head := t.put(s, event.Head{}, batchAfter("a", event.Head{}, 2))
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	t.wantErr(context.Canceled, s.Append(ctx, "a", head, batchAfter("a", head, 1), false))
	t.wantErr(context.Canceled, s.Append(ctx, "b", event.Head{}, batchAfter("b", event.Head{}, 1), true))
	_, err := collect(s.Read(ctx, "a", eventlog.Span{}))
	t.wantErr(context.Canceled, err)
	_, err = collect(s.Sessions(ctx))
	t.wantErr(context.Canceled, err)
	t.same("events", 2, len(t.span(s, "a", eventlog.Span{})))
	t.missing(t.log(), "b")
}

func testStoreHostile(t *env) {
	s := t.store()
	t.put(s, event.Head{}, batchAfter("a", event.Head{}, 1))
	for _, id := range hostileIDs() {
		events, err := collect(s.Read(t.ctx, id, eventlog.Span{}))
		if !errors.Is(err, eventlog.ErrNotFound) && !errors.Is(err, event.ErrInvalidSession) {
			t.Errorf("reading session %q gave %d events and error %v", id, len(events), err)
		}
	}
	t.contained()
	infos, err := collect(s.Sessions(t.ctx))
	t.must(err)
	t.same("number of sessions", 1, len(infos))
}

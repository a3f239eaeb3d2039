package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var storeCases = []testCase{
	{
		Name:        "append and read back",
		Explanation: "A read returns the appended lines byte for byte and in order.",
		Run:         testStoreRoundTrip,
	},
	{
		Name:        "copies the events",
		Explanation: "A store copies the caller's bytes. The caller may reuse them after Append.",
		Run:         testStoreCopies,
	},
	{
		Name:        "lines in any layout",
		Explanation: "Lines with white space, another member order or unknown members are stored byte for byte.",
		Run:         testStoreVerbatim,
	},
	{
		Name:        "compares the head",
		Explanation: "Append compares the seq and the hash of the expected head. On a mismatch it writes nothing and returns a ConflictError with the actual head.",
		Run:         testStoreCompares,
	},
	{
		Name:        "zero head",
		Explanation: "The zero head requires that the session is missing. Any other head requires that the session exists.",
		Run:         testStoreZeroHead,
	},
	{
		Name:        "missing session",
		Explanation: "Reading a missing session is ErrNotFound for every span, never an empty sequence.",
		Run:         testStoreMissing,
	},
	{
		Name:        "one writer succeeds",
		Explanation: "Of concurrent writers at one head exactly one succeeds. The others get a ConflictError with the new head.",
		Run:         testStoreRace,
	},
	{
		Name:        "starts at any seq",
		Explanation: "The first event of a session may have any seq: a fork's own events start after the parent's events.",
		Run:         testStoreLateStart,
	},
	{
		Name:        "ended context",
		Explanation: "Every method returns the error of an ended context and writes nothing.",
		Run:         testStoreEndedContext,
	},
	{
		Name:        "hostile session ids",
		Explanation: "A hostile session id is an error and never touches a file outside the store.",
		Run:         testStoreHostile,
	},
}

func testStoreRoundTrip(t *env) {
	s := t.Store()
	var want []string
	head := event.Head{}
	for n := range 5 {
		batch := suite.BatchAfter("a", head, n+1)
		head = t.AppendLines(s, head, batch)
		want = append(want, suite.LinesOf(batch)...)
	}
	got := t.Span(s, "a", eventlog.Span{})
	t.WantEqual("lines", want, suite.LinesOf(got))
	t.WantEqual("head", head, suite.HeadOf(got))
}

func testStoreCopies(t *env) {
	s := t.Store()
	head := t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	batch := suite.BatchAfter("a", head, 3)
	want := suite.LinesOf(batch)
	t.AppendLines(s, head, batch)
	for i := range batch {
		clear(batch[i].Line())
		batch[i] = event.Event{}
	}
	t.WantEqual("lines", want, suite.LinesOf(t.Span(s, "a", eventlog.Span{From: 2})))
}

func testStoreVerbatim(t *env) {
	s := t.Store()
	plain := suite.ChainAfter("a", event.Head{},
		suite.Line{Data: `{"text":"\u00e9 \/ \"é"}`, Members: `"metadata":{"n":1.0},"x-later":[1,{"deep":-0}],"y":1E400`})[0]
	text := string(plain.Line())
	loose := suite.MustParse(text[:1]+" "+text[1:17]+"  "+text[17:len(text)-1]+" }", "a")
	t.AppendLines(s, event.Head{}, []event.Event{loose})
	t.WantEqual("line", []string{string(loose.Line())}, suite.LinesOf(t.Span(s, "a", eventlog.Span{})))
	t.WantEqual("line after a reopen", []string{string(loose.Line())}, t.Lines(t.Reopen(), "a"))
}

func testStoreCompares(t *env) {
	s := t.Store()
	first := t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 2))
	actual := t.AppendLines(s, first, suite.BatchAfter("a", first, 2))
	want := suite.LinesOf(t.Span(s, "a", eventlog.Span{}))
	forged := actual
	forged.Hash[31] ^= 1
	for _, expect := range []event.Head{{}, first, forged, {Seq: 9, Hash: actual.Hash}, {Seq: 4}} {
		err := s.Append(t.Ctx, "a", expect, suite.BatchAfter("a", expect, 1), false)
		t.WantConflict(err, expect, actual)
	}
	t.WantEqual("lines", want, suite.LinesOf(t.Span(s, "a", eventlog.Span{})))
}

func testStoreZeroHead(t *env) {
	s := t.Store()
	elsewhere := suite.HeadOf(suite.BatchAfter("a", event.Head{}, 3))
	err := s.Append(t.Ctx, "a", elsewhere, suite.BatchAfter("a", elsewhere, 1), false)
	t.WantConflict(err, elsewhere, event.Head{})
	_, err = suite.Collect(s.Read(t.Ctx, "a", eventlog.Span{}))
	t.WantErr(eventlog.ErrNotFound, err)
	t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
}

func testStoreMissing(t *env) {
	s := t.Store()
	t.AppendLines(s, event.Head{}, suite.BatchAfter("b", event.Head{}, 1))
	for _, r := range []eventlog.Span{{}, {From: 3}, {To: 3}, {Backward: true, Limit: 1}, {From: 5, To: 2}} {
		events, err := suite.Collect(s.Read(t.Ctx, "a", r))
		if !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("reading %+v returned %d events and error %v, want ErrNotFound", r, len(events), err)
		}
	}
}

const racers = 16

func testStoreRace(t *env) {
	s := t.Store()
	head := event.Head{}
	for round := range testsize.Fewer(40) {
		batches := make([][]event.Event, racers)
		for i := range batches {
			batches[i] = suite.BatchAfter("a", head, 1+i%3)
		}
		errs := suite.Concurrently(racers, func(i int) error { return s.Append(t.Ctx, "a", head, batches[i], false) })
		won := slices.Index(errs, nil)
		if won < 0 {
			t.Fatalf("round %d: no append succeeded: %v", round, errs[0])
		}
		next := suite.HeadOf(batches[won])
		for i, err := range errs {
			if i != won {
				t.WantConflict(err, head, next)
			}
		}
		t.WantEqual("lines of the successful append", suite.LinesOf(batches[won]), suite.LinesOf(t.Span(s, "a", eventlog.Span{From: head.Seq + 1})))
		head = next
	}
}

func testStoreLateStart(t *env) {
	s := t.Store()
	parent := suite.HeadOf(suite.BatchAfter("p", event.Head{}, 41))
	events := suite.ChainAfter("f", parent, suite.Line{Typ: "session_forked", Data: fmt.Sprintf(
		`{"parent":"p","seq":41,"event_id":"%s","hash":"%s"}`, event.NewID(), parent.Hash)}, suite.Line{Data: "1"}, suite.Line{Data: "2"})
	t.AppendLines(s, event.Head{}, events)
	head := t.AppendLines(s, suite.HeadOf(events), suite.BatchAfter("f", suite.HeadOf(events), 2))
	t.WantEqual("seqs", []int64{42, 43, 44, 45, 46}, suite.SeqsOf(t.Span(s, "f", eventlog.Span{})))
	t.WantEqual("seqs from 45", []int64{45, 46}, suite.SeqsOf(t.Span(s, "f", eventlog.Span{From: 45})))
	t.WantEqual("seqs below the first", []int64{}, suite.SeqsOf(t.Span(s, "f", eventlog.Span{To: 41})))
	t.WantEqual("newest", []int64{46, 45}, suite.SeqsOf(t.Span(s, "f", eventlog.Span{Backward: true, Limit: 2})))
	t.WantEqual("head after a reopen", head, t.Head(t.Reopen(), "f"))
}

func testStoreEndedContext(t *env) {
	s := t.Store()
	head := t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 2))
	ctx, cancel := context.WithCancel(t.Ctx)
	cancel()
	t.WantErr(context.Canceled, s.Append(ctx, "a", head, suite.BatchAfter("a", head, 1), false))
	t.WantErr(context.Canceled, s.Append(ctx, "b", event.Head{}, suite.BatchAfter("b", event.Head{}, 1), true))
	_, err := suite.Collect(s.Read(ctx, "a", eventlog.Span{}))
	t.WantErr(context.Canceled, err)
	_, err = suite.Collect(s.Sessions(ctx))
	t.WantErr(context.Canceled, err)
	t.WantEqual("events", 2, len(t.Span(s, "a", eventlog.Span{})))
	t.WantMissing(t.Main(), "b")
}

func testStoreHostile(t *env) {
	s := t.Store()
	t.AppendLines(s, event.Head{}, suite.BatchAfter("a", event.Head{}, 1))
	for _, id := range suite.HostileIDs() {
		events, err := suite.Collect(s.Read(t.Ctx, id, eventlog.Span{}))
		if !errors.Is(err, eventlog.ErrNotFound) && !errors.Is(err, event.ErrInvalidSession) {
			t.Errorf("reading session %q returned %d events and error %v", id, len(events), err)
		}
	}
	t.WantNoOtherFiles()
	infos, err := suite.Collect(s.Sessions(t.Ctx))
	t.Must(err)
	t.WantEqual("number of sessions", 1, len(infos))
}

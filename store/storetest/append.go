package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var appendCases = []testCase{
	{
		name:        "read back",
		explanation: "What is appended is read back: contiguous seqs from 1, ids, types, data, and a chain that verifies.",
		run:         testAppendReadBack,
	},
	{
		name:        "returns the head",
		explanation: "Append returns the head behind its events, which is what Head gives and At accepts.",
		run:         testAppendHead,
	},
	{
		name:        "no events",
		explanation: "Appending no events does nothing: no error, no session, no change.",
		run:         testAppendNothing,
	},
	{
		name:        "event of another session",
		explanation: "An event that belongs to session b is refused by session a, and reaches neither.",
		run: func(t *env) {
			t.fill(t.log(), "a", 2)
			stray := note(7)
			stray.SessionID = "b"
			t.refused(event.ErrInvalidSession, t.log(), "a", eventlog.Any(), note(1), stray)
			t.missing(t.log(), "b")
		},
	},
	{
		name:        "stored event",
		explanation: "An event that was read from a log cannot be appended as if it were new.",
		run: func(t *env) {
			t.fill(t.log(), "a", 2)
			t.refused(event.ErrInvalid, t.log(), "a", eventlog.Any(), t.read(t.log(), "a", eventlog.All())[0])
			_, err := t.log().Append(t.ctx, "b", eventlog.New(), t.read(t.log(), "a", eventlog.All())...)
			t.wantErr(event.ErrInvalid, err)
			t.missing(t.log(), "b")
		},
	},
	{
		name:        "time and cost",
		explanation: "A timestamp keeps its nanoseconds in UTC; a missing one is set; costs are exact to a nano-dollar and sum without error.",
		run:         testAppendTimeAndCost,
	},
	{
		name:        "costs that are no amounts",
		explanation: "A negative cost is refused.",
		run: func(t *env) {
			e := note(1)
			e.Cost = -1
			t.refused(event.ErrInvalidCost, t.log(), "a", eventlog.Any(), e)
		},
	},
	{
		name:        "types",
		explanation: "A type is 1 to 128 bytes without control characters; others are refused.",
		run: func(t *env) {
			for _, typ := range []event.Type{"", "a\nb", "a\x00", event.Type(text("t", 129)), "\xff", "\u0085"} {
				t.refused(event.ErrInvalidType, t.log(), "a", eventlog.Any(), newEvent(typ, "{}"))
			}
			t.append(t.log(), "a", eventlog.New(), newEvent(event.Type("t:"+text("t", 126)), "{}"), newEvent(`t:q"\é`, "{}"))
			t.same("type", event.Type(`t:q"\é`), t.read(t.reopen(), "a", eventlog.Last(1))[0].Type)
		},
	},
	{
		name:        "order is not that of ids",
		explanation: "seq is the only order: events whose ids are older than their predecessors' keep the order they were appended in.",
		run:         testAppendOldIDs,
	},
	{
		name:        "id taken by other content",
		explanation: "An id near the tail that is taken by other content is a conflict that names the id, under any expectation.",
		run:         testAppendTakenID,
	},
	{
		name:        "one id twice in a batch",
		explanation: "Two events of one append cannot share an id.",
		run: func(t *env) {
			e := note(1)
			twin := note(2)
			twin.ID = e.ID
			t.refused(eventlog.ErrConflict, t.log(), "a", eventlog.Any(), e, twin)
		},
	},
	{
		name:        "demands durability",
		explanation: "Durable reaches the store for the append that asked, and for no other.",
		run:         testAppendDurable,
	},
	{
		name:        "metadata of the context",
		explanation: "Metadata in the context is merged into every event; the event's own names win, and numbers keep their digits.",
		run:         testAppendContextMetadata,
	},
	{
		name:        "leaves the caller's events alone",
		explanation: "Append works on copies: the caller's events are as they were, and can be appended again as a retry.",
		needs:       []Need{Blobs},
		run:         testAppendCopies,
	},
}

func testAppendReadBack(t *env) {
	l := t.log()
	events := []event.Event{user("hello"), note(1), calls("c1"), result("c1")}
	t.append(l, "a", eventlog.New(), events[0])
	t.append(l, "a", eventlog.Any(), events[1:]...)
	got := t.read(l, "a", eventlog.All())
	t.same("ids", idsOf(events), idsOf(got))
	t.same("seqs", []int64{1, 2, 3, 4}, seqsIn(got))
	for i := range got {
		t.same("session", "a", got[i].SessionID)
		t.same("type", events[i].Type, got[i].Type)
		t.same("data", string(events[i].Data), string(got[i].Data))
	}
	t.same("lines", t.lines(l, "a"), linesOf(got))
	t.sound(l, "a")
	t.same("lines after a reopen", linesOf(got), t.lines(t.reopen(), "a"))
	t.sound(t.log(), "a")
}

func testAppendHead(t *env) {
	l := t.log()
	head := event.Head{}
	for n := range 20 {
		head = t.append(l, "a", eventlog.At(head), notes(1+n%3)...)
		t.same("head", head, t.head(l, "a"))
		last := t.read(l, "a", eventlog.Last(1))[0]
		t.same("head of the newest event", head, last.Head())
	}
	t.same("head after a reopen", head, t.head(t.reopen(), "a"))
}

func testAppendNothing(t *env) {
	l := t.log()
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.New()} {
		t.append(l, "a", x)
	}
	t.missing(l, "a")
	head := t.fill(l, "a", 2)
	t.append(l, "a", eventlog.Any())
	t.append(l, "a", eventlog.At(head))
	t.same("head", head, t.head(l, "a"))
}

func testAppendTimeAndCost(t *env) {
	l := t.log()
	random := rand.New(rand.NewPCG(3, 4))
	at := time.Date(2026, 2, 28, 23, 59, 59, 123456789, time.FixedZone("", 3600))
	var total event.Cost
	for range 200 {
		e := note(1)
		e.Timestamp, e.Cost = at, event.Cost(random.Int64N(1e12))
		total += e.Cost
		t.append(l, "a", eventlog.Any(), e)
	}
	t.append(l, "a", eventlog.Any(), note(2))
	var got event.Cost
	for _, e := range t.read(t.reopen(), "a", eventlog.All()) {
		got += e.Cost
		if e.Timestamp.IsZero() || e.Seq <= 200 && !e.Timestamp.Equal(at) || e.Timestamp.Location() != time.UTC {
			t.Fatalf("event %d has timestamp %v", e.Seq, e.Timestamp)
		}
	}
	t.same("sum of the costs", total, got)
}

func testAppendOldIDs(t *env) {
	l := t.log()
	random := rand.New(rand.NewPCG(5, 6))
	var want []string
	for n := range 100 {
		e := note(n)
		t.must(e.ID.SetTime(1_700_000_000_000 + random.Uint64N(1e9)))
		want = append(want, e.ID.String())
		t.append(l, "a", eventlog.Any(), e)
	}
	l = t.reopen()
	t.same("ids in order", want, idsOf(t.read(l, "a", eventlog.All())))
	id, err := ulid.ParseStrict(want[60])
	t.must(err)
	t.same("ids until an event", want[:61], idsOf(t.read(l, "a", eventlog.Until(id))))
}

func testAppendTakenID(t *env) {
	l := t.log()
	t.fill(l, "a", 3)
	before := t.head(l, "a")
	e := note(1)
	after := t.append(l, "a", eventlog.Any(), e)
	other := note(2)
	other.ID = e.ID
	metadata := e
	metadata.Metadata = []byte(`{"k":1}`)
	cost := e
	cost.Cost = 5
	typ := e
	typ.Type = "test:other"
	for _, twin := range []event.Event{other, metadata, cost, typ} {
		for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.AnyAfter(before), eventlog.At(before), eventlog.At(after)} {
			t.refused(eventlog.ErrConflict, l, "a", x, twin)
		}
	}
	l = t.reopen()
	t.refused(eventlog.ErrConflict, l, "a", eventlog.Any(), note(3), other)
	t.same("ids", 4, len(slices.Compact(slices.Sorted(slices.Values(idsOf(t.read(l, "a", eventlog.All())))))))
}

func testAppendDurable(t *env) {
	w := &watchful{Store: t.open()}
	l := t.over(w)
	t.append(l, "a", eventlog.New().Durable(), note(1))
	head := t.append(l, "a", eventlog.Any(), note(2))
	t.append(l, "a", eventlog.At(head).Durable(), note(3))
	t.same("durability demanded", []bool{true, false, true}, w.durable)
	t.same("seqs after a reopen", []int64{1, 2, 3}, seqsIn(t.read(t.reopen(), "a", eventlog.All())))
}

func testAppendContextMetadata(t *env) {
	l := t.log()
	ctx := eventlog.WithMetadata(t.ctx, map[string]any{"trace": "t1", "big": int64(9007199254740993)})
	own := noted(2, `{"trace":"mine","n":1E400}`)
	_, err := l.Append(ctx, "a", eventlog.New(), note(1), own)
	t.must(err)
	events := t.read(t.reopen(), "a", eventlog.All())
	for i, want := range []map[string]string{
		{"trace": `"t1"`, "big": "9007199254740993"},
		{"trace": `"mine"`, "big": "9007199254740993", "n": "1E400"},
	} {
		for name, value := range want {
			got, _ := events[i].MetadataValue(name)
			t.same(fmt.Sprintf("metadata %s of event %d", name, i+1), value, string(got))
		}
	}
	_, err = t.log().Append(ctx, "a", eventlog.New(), note(1), own)
	t.wantErr(eventlog.ErrConflict, err)
	t.refusedUnder(eventlog.WithMetadata(t.ctx, map[string]any{"f": func() {}}), event.ErrInvalidMetadata)
}

// refusedUnder makes sure that an append under ctx is refused with want.
func (t *env) refusedUnder(ctx context.Context, want error) {
	t.Helper()
	before := t.lines(t.log(), "a")
	_, err := t.log().Append(ctx, "a", eventlog.Any(), note(1))
	t.wantErr(want, err)
	t.same("lines", before, t.lines(t.log(), "a"))
}

func testAppendCopies(t *env) {
	events := []event.Event{user("spaced"), noted(1, ` {"a" : 1} `), newEvent("test:note", ` [ 1, 2 ] `)}
	want := fmt.Sprintf("%+v", events)
	l := t.over(t.open(), eventlog.Options{SpillOver: 4})
	head := t.append(l, "a", eventlog.New(), events...)
	t.same("the caller's events", want, fmt.Sprintf("%+v", events))
	t.same("head of the retry", head, t.append(l, "a", eventlog.New(), events...))
	t.same("events", 3, len(t.read(l, "a", eventlog.All())))
}

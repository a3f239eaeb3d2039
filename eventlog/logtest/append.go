package logtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
)

var appendCases = []testCase{
	{
		Name:        "read back",
		Explanation: "A read returns the appended events: seqs from 1 without gaps, ids, types, data, and a chain that verifies.",
		Run:         testAppendReadBack,
	},
	{
		Name:        "returns the head",
		Explanation: "Append returns the head after its events. Head returns the same head, and At accepts it.",
		Run:         testAppendHead,
	},
	{
		Name:        "no events",
		Explanation: "An append without events does nothing: no error, no session, no change.",
		Run:         testAppendNothing,
	},
	{
		Name:        "event of another session",
		Explanation: "An event of session b is rejected by session a, and neither session gets it.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 2)
			stray := suite.Note(7)
			stray.SessionID = "b"
			t.WantAppendError(event.ErrInvalidSession, t.Main(), "a", eventlog.Any(), suite.Note(1), stray)
			t.WantMissing(t.Main(), "b")
		},
	},
	{
		Name:        "stored event",
		Explanation: "An event that was read from a log cannot be appended as a new event.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 2)
			t.WantAppendError(event.ErrInvalid, t.Main(), "a", eventlog.Any(), t.Read(t.Main(), "a", eventlog.All())[0])
			_, err := t.Main().Append(t.Ctx, "b", eventlog.New(), t.Read(t.Main(), "a", eventlog.All())...)
			t.WantErr(event.ErrInvalid, err)
			t.WantMissing(t.Main(), "b")
		},
	},
	{
		Name:        "time and cost",
		Explanation: "A timestamp keeps its nanoseconds in UTC. A missing timestamp is set. Costs are exact to a nano-dollar.",
		Run:         testAppendTimeAndCost,
	},
	{
		Name:        "invalid costs",
		Explanation: "A negative cost is rejected.",
		Run: func(t *env) {
			e := suite.Note(1)
			e.Cost = -1
			t.WantAppendError(event.Rule("cost"), t.Main(), "a", eventlog.Any(), e)
		},
	},
	{
		Name:        "types",
		Explanation: "A type has 1 to 128 bytes and no control characters. Other types are rejected.",
		Run: func(t *env) {
			for _, typ := range []event.Type{"", "a\nb", "a\x00", event.Type(suite.Text("t", 129)), "\xff", "\u0085"} {
				t.WantAppendError(event.ErrInvalidType, t.Main(), "a", eventlog.Any(), suite.NewEvent(typ, "{}"))
			}
			t.Append(t.Main(), "a", eventlog.New(), suite.NewEvent(event.Type("t:"+suite.Text("t", 126)), "{}"), suite.NewEvent(`t:q"\é`, "{}"))
			t.WantEqual("type", event.Type(`t:q"\é`), t.Read(t.Reopen(), "a", eventlog.Last(1))[0].Type)
		},
	},
	{
		Name:        "order of old ids",
		Explanation: "Only seq orders events: events with ids older than the previous ids keep the order of their append.",
		Run:         testAppendOldIDs,
	},
	{
		Name:        "used id",
		Explanation: "An id that a recent event with other content has is a conflict that names the id, under any expectation.",
		Run:         testAppendTakenID,
	},
	{
		Name:        "same id twice in an append",
		Explanation: "Two events of one append cannot have the same id.",
		Run: func(t *env) {
			e := suite.Note(1)
			twin := suite.Note(2)
			twin.ID = e.ID
			t.WantAppendError(eventlog.ErrConflict, t.Main(), "a", eventlog.Any(), e, twin)
		},
	},
	{
		Name:        "durable",
		Explanation: "Durable reaches the store for the append that asks for it, and for no other append.",
		Run:         testAppendDurable,
	},
	{
		Name:        "metadata of the context",
		Explanation: "The metadata of the context is merged into every event. The event's own names win, and numbers keep their digits.",
		Run:         testAppendContextMetadata,
	},
	{
		Name:        "copies the events",
		Explanation: "Append works on copies. The caller's events do not change and can be appended again as a retry.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testAppendCopies,
	},
}

func testAppendReadBack(t *env) {
	l := t.Main()
	events := []event.Event{suite.User("hello"), suite.Note(1), suite.Calls("c1"), suite.Result("c1")}
	t.Append(l, "a", eventlog.New(), events[0])
	t.Append(l, "a", eventlog.Any(), events[1:]...)
	got := t.Read(l, "a", eventlog.All())
	t.WantEqual("ids", suite.IDsOf(events), suite.IDsOf(got))
	t.WantEqual("seqs", []int64{1, 2, 3, 4}, suite.SeqsOf(got))
	for i := range got {
		t.WantEqual("session", "a", got[i].SessionID)
		t.WantEqual("type", events[i].Type, got[i].Type)
		t.WantEqual("data", string(events[i].Data), string(got[i].Data))
	}
	t.WantEqual("lines", t.Lines(l, "a"), suite.LinesOf(got))
	t.WantVerified(l, "a")
	t.WantEqual("lines after a reopen", suite.LinesOf(got), t.Lines(t.Reopen(), "a"))
	t.WantVerified(t.Main(), "a")
}

func testAppendHead(t *env) {
	l := t.Main()
	head := event.Head{}
	for n := range 20 {
		head = t.Append(l, "a", eventlog.At(head), suite.Notes(1+n%3)...)
		t.WantEqual("head", head, t.Head(l, "a"))
		last := t.Read(l, "a", eventlog.Last(1))[0]
		t.WantEqual("head of the newest event", head, last.Head())
	}
	t.WantEqual("head after a reopen", head, t.Head(t.Reopen(), "a"))
}

func testAppendNothing(t *env) {
	l := t.Main()
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.New()} {
		t.Append(l, "a", x)
	}
	t.WantMissing(l, "a")
	head := t.Fill(l, "a", 2)
	t.Append(l, "a", eventlog.Any())
	t.Append(l, "a", eventlog.At(head))
	t.WantEqual("head", head, t.Head(l, "a"))
}

func testAppendTimeAndCost(t *env) {
	l := t.Main()
	random := rand.New(rand.NewPCG(3, 4))
	at := time.Date(2026, 2, 28, 23, 59, 59, 123456789, time.FixedZone("", 3600))
	var total event.Cost
	count := testsize.Fewer(200)
	for range count {
		e := suite.Note(1)
		e.Timestamp, e.Cost = at, event.Cost(random.Int64N(1e12))
		total += e.Cost
		t.Append(l, "a", eventlog.Any(), e)
	}
	t.Append(l, "a", eventlog.Any(), suite.Note(2))
	var got event.Cost
	for _, e := range t.Read(t.Reopen(), "a", eventlog.All()) {
		got += e.Cost
		if e.Timestamp.IsZero() || e.Seq <= int64(count) && !e.Timestamp.Equal(at) || e.Timestamp.Location() != time.UTC {
			t.Fatalf("event %d has timestamp %v", e.Seq, e.Timestamp)
		}
	}
	t.WantEqual("sum of the costs", total, got)
}

func testAppendOldIDs(t *env) {
	l := t.Main()
	random := rand.New(rand.NewPCG(5, 6))
	var want []string
	for n := range 100 {
		e := suite.Note(n)
		t.Must(e.ID.SetTime(1_700_000_000_000 + random.Uint64N(1e9)))
		want = append(want, e.ID.String())
		t.Append(l, "a", eventlog.Any(), e)
	}
	l = t.Reopen()
	t.WantEqual("ids in order", want, suite.IDsOf(t.Read(l, "a", eventlog.All())))
	id, err := ulid.ParseStrict(want[60])
	t.Must(err)
	t.WantEqual("ids until an event", want[:61], suite.IDsOf(t.Read(l, "a", eventlog.All().Until(id))))
}

func testAppendTakenID(t *env) {
	l := t.Main()
	t.Fill(l, "a", 3)
	before := t.Head(l, "a")
	e := suite.Note(1)
	after := t.Append(l, "a", eventlog.Any(), e)
	other := suite.Note(2)
	other.ID = e.ID
	metadata := e
	metadata.Metadata = []byte(`{"k":1}`)
	cost := e
	cost.Cost = 5
	typ := e
	typ.Type = "test:other"
	for _, twin := range []event.Event{other, metadata, cost, typ} {
		for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.Any().After(before), eventlog.At(before), eventlog.At(after)} {
			t.WantAppendError(eventlog.ErrConflict, l, "a", x, twin)
		}
	}
	l = t.Reopen()
	t.WantAppendError(eventlog.ErrConflict, l, "a", eventlog.Any(), suite.Note(3), other)
	t.WantEqual("ids", 4, len(slices.Compact(slices.Sorted(slices.Values(suite.IDsOf(t.Read(l, "a", eventlog.All())))))))
}

func testAppendDurable(t *env) {
	w := &suite.CountingStore{Store: t.Open()}
	l := t.LogOver(w)
	t.Append(l, "a", eventlog.New().Durable(), suite.Note(1))
	head := t.Append(l, "a", eventlog.Any(), suite.Note(2))
	t.Append(l, "a", eventlog.At(head).Durable(), suite.Note(3))
	t.WantEqual("durability demanded", []bool{true, false, true}, w.Durable)
	t.WantEqual("seqs after a reopen", []int64{1, 2, 3}, suite.SeqsOf(t.Read(t.Reopen(), "a", eventlog.All())))
}

func testAppendContextMetadata(t *env) {
	l := t.Main()
	ctx := eventlog.WithMetadata(t.Ctx, map[string]any{"trace": "t1", "big": int64(9007199254740993)})
	own := suite.NoteWithMetadata(2, `{"trace":"mine","n":1E400}`)
	_, err := l.Append(ctx, "a", eventlog.New(), suite.Note(1), own)
	t.Must(err)
	events := t.Read(t.Reopen(), "a", eventlog.All())
	for i, want := range []map[string]string{
		{"trace": `"t1"`, "big": "9007199254740993"},
		{"trace": `"mine"`, "big": "9007199254740993", "n": "1E400"},
	} {
		for name, value := range want {
			got, _ := events[i].MetadataValue(name)
			t.WantEqual(fmt.Sprintf("metadata %s of event %d", name, i+1), value, string(got))
		}
	}
	_, err = t.Main().Append(ctx, "a", eventlog.New(), suite.Note(1), own)
	t.WantErr(eventlog.ErrConflict, err)
	t.wantRefusedUnder(eventlog.WithMetadata(t.Ctx, map[string]any{"f": func() {}}), event.Rule("metadata"))
}

// wantRefusedUnder checks that an append with ctx fails with want.
func (t *env) wantRefusedUnder(ctx context.Context, want error) {
	t.Helper()
	before := t.Lines(t.Main(), "a")
	_, err := t.Main().Append(ctx, "a", eventlog.Any(), suite.Note(1))
	t.WantErr(want, err)
	t.WantEqual("lines", before, t.Lines(t.Main(), "a"))
}

func testAppendCopies(t *env) {
	events := []event.Event{suite.User("spaced"), suite.NoteWithMetadata(1, ` {"a" : 1} `), suite.NewEvent("test:note", ` [ 1, 2 ] `)}
	want := fmt.Sprintf("%+v", events)
	l := t.LogOver(t.Open(), eventlog.Options{SpillOver: 4})
	head := t.Append(l, "a", eventlog.New(), events...)
	t.WantEqual("the caller's events", want, fmt.Sprintf("%+v", events))
	t.WantEqual("head of the retry", head, t.Append(l, "a", eventlog.New(), events...))
	t.WantEqual("events", 3, len(t.Read(l, "a", eventlog.All())))
}

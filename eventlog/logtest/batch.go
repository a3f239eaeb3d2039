package logtest

import (
	"errors"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var batchCases = []testCase{
	{
		Name:        "counts down",
		Explanation: "Each event of an append has the number of events of the append after it.",
		Run: func(t *env) {
			t.Append(t.Main(), "a", eventlog.New(), suite.Notes(3)...)
			t.Append(t.Main(), "a", eventlog.Any(), suite.Note(4))
			var more []int
			for _, e := range t.Read(t.Reopen(), "a", eventlog.All()) {
				more = append(more, e.More())
			}
			t.WantEqual("more", []int{2, 1, 0, 0}, more)
		},
	},
	{
		Name:        "AppendEach",
		Explanation: "AppendEach writes several appends with one expectation. Each append counts its own events, a retry stores nothing, and one rejected event rejects all appends.",
		Run:         testBatchEach,
	},
	{
		Name:        "rejected as a whole",
		Explanation: "One rejected event rejects the whole append, at any position, and the store does not change.",
		Run:         testBatchRefused,
	},
	{
		Name:        "rejected first append",
		Explanation: "A rejected append does not create its session.",
		Run: func(t *env) {
			t.WantAppendError(event.OrphanResult, t.Main(), "a", eventlog.New(), suite.Note(1), suite.Result("missing"), suite.Note(2))
			t.WantMissing(t.Main(), "a")
			t.Append(t.Main(), "a", eventlog.New(), suite.Note(1))
			t.WantEqual("events", 1, len(t.Lines(t.Main(), "a")))
		},
	},
	{
		Name:        "rejected append leaves the cache",
		Explanation: "A rejected append does not change the log's cache: its calls are not pending, and its ids are free.",
		Run:         testBatchRolledBack,
	},
	{
		Name:        "visible as a whole",
		Explanation: "A reader sees all events of an append or none, also when it reads backward or the last events.",
		Run:         testBatchVisible,
	},
}

func testBatchEach(t *env) {
	l, ctx := t.Main(), t.Context()
	appends := [][]event.Event{suite.Notes(3), {suite.Note(4)}, {suite.Note(5), suite.Note(6)}}
	head, err := l.AppendEach(ctx, "a", eventlog.New(), appends...)
	t.Must(err)
	again, err := l.AppendEach(ctx, "a", eventlog.New(), appends...)
	t.Must(err)
	t.WantEqual("head of the retry", head, again)
	_, err = l.AppendEach(ctx, "a", eventlog.At(head), suite.Notes(2), []event.Event{suite.Note(3), suite.Result("missing")})
	t.WantErr(event.OrphanResult, err)
	var more []int
	for _, e := range t.Read(t.Reopen(), "a", eventlog.All()) {
		more = append(more, e.More())
	}
	t.WantEqual("more", []int{2, 1, 0, 0, 1, 0}, more)
	t.WantVerified(t.Main(), "a")
}

func testBatchRefused(t *env) {
	l := t.Main()
	t.Fill(l, "a", 3)
	for at := range 5 {
		batch := suite.Notes(5)
		batch[at] = suite.Result("missing")
		t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), batch...)
		batch = suite.Notes(5)
		batch[at].Data = []byte(`{"a":1,"a":2}`)
		t.WantAppendError(event.ErrInvalidData, l, "a", eventlog.At(t.Head(l, "a")), batch...)
	}
	t.WantEqual("seqs after a reopen", []int64{1, 2, 3}, suite.SeqsOf(t.Read(t.Reopen(), "a", eventlog.All())))
}

func testBatchRolledBack(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Calls("kept"))
	call := suite.Calls("c1")
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), call, suite.Result("kept"), suite.Result("missing"))
	t.WantAppendError(event.OrphanResult, l, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(l, "a", eventlog.Any(), call)
	t.Append(l, "a", eventlog.Any(), suite.Result("c1"))
	t.Append(l, "a", eventlog.Any(), suite.Result("kept"))
	t.WantVerified(l, "a")
}

const batchSize = 7

func testBatchVisible(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Notes(batchSize)...)
	var done atomic.Bool
	errs := suite.Concurrently(4, func(i int) error {
		if i == 0 {
			defer done.Store(true)
			return appendBatches(t, l, 60)
		}
		for !done.Load() {
			if err := readWhole(t, l, i); err != nil {
				return err
			}
		}
		return nil
	})
	t.Must(errors.Join(errs...))
}

func appendBatches(t *env, l *eventlog.Log, n int) error {
	for range n {
		if _, err := l.Append(t.Ctx, "a", eventlog.Any(), suite.Notes(batchSize)...); err != nil {
			return err
		}
	}
	return nil
}

var errTorn = errors.New("a reader got a part of an append")

// readWhole reads in one of three ways and checks that the session ends at the end of
// an append.
func readWhole(t *env, l *eventlog.Log, way int) error {
	r := []eventlog.Range{eventlog.All().Backward(), eventlog.All(), eventlog.Last(batchSize + 2)}[way-1]
	events, err := suite.Collect(l.Read(t.Ctx, "a", r))
	if err != nil {
		return err
	}
	last := events[len(events)-1]
	if way == 1 {
		last = events[0]
	}
	if last.More() != 0 || last.Seq%batchSize != 0 {
		return errTorn
	}
	return nil
}

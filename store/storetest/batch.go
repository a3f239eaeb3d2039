package storetest

import (
	"errors"
	"sync/atomic"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var batchCases = []testCase{
	{
		name:        "counts down",
		explanation: "The events of one append say how many of it follow.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), notes(3)...)
			t.append(t.log(), "a", eventlog.Any(), note(4))
			var more []int
			for _, e := range t.read(t.reopen(), "a", eventlog.All()) {
				more = append(more, e.More())
			}
			t.same("more", []int{2, 1, 0, 0}, more)
		},
	},
	{
		name:        "several in one write",
		explanation: "AppendEach writes several appends behind one expectation: each counts down by itself, a retry stores nothing, and one refused event refuses all.",
		run:         testBatchEach,
	},
	{
		name:        "refused as a whole",
		explanation: "One refused event refuses the append it is in, wherever it stands, and the store is as it was.",
		run:         testBatchRefused,
	},
	{
		name:        "refused when new",
		explanation: "A refused append does not create its session.",
		run: func(t *env) {
			t.refused(event.ErrInvalidResult, t.log(), "a", eventlog.New(), note(1), result("nobody"), note(2))
			t.missing(t.log(), "a")
			t.append(t.log(), "a", eventlog.New(), note(1))
			t.same("events", 1, len(t.lines(t.log(), "a")))
		},
	},
	{
		name:        "refused leaves no trace in memory",
		explanation: "What a refused append would have changed is not remembered: its calls are not pending, its ids not taken.",
		run:         testBatchRolledBack,
	},
	{
		name:        "visible all or none",
		explanation: "A reader sees the events of an append all or not at all, also when reading backwards or the last few.",
		run:         testBatchVisible,
	},
}

func testBatchEach(t *env) {
	l, ctx := t.log(), t.Context()
	appends := [][]event.Event{notes(3), {note(4)}, {note(5), note(6)}}
	head, err := l.AppendEach(ctx, "a", eventlog.New(), appends...)
	t.must(err)
	again, err := l.AppendEach(ctx, "a", eventlog.New(), appends...)
	t.must(err)
	t.same("head of the retry", head, again)
	_, err = l.AppendEach(ctx, "a", eventlog.At(head), notes(2), []event.Event{note(3), result("nobody")})
	t.wantErr(event.ErrInvalidResult, err)
	var more []int
	for _, e := range t.read(t.reopen(), "a", eventlog.All()) {
		more = append(more, e.More())
	}
	t.same("more", []int{2, 1, 0, 0, 1, 0}, more)
	t.sound(t.log(), "a")
}

func testBatchRefused(t *env) {
	l := t.log()
	t.fill(l, "a", 3)
	for at := range 5 {
		batch := notes(5)
		batch[at] = result("nobody")
		t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), batch...)
		batch = notes(5)
		batch[at].Data = []byte(`{"a":1,"a":2}`)
		t.refused(event.ErrInvalidData, l, "a", eventlog.At(t.head(l, "a")), batch...)
	}
	t.same("seqs after a reopen", []int64{1, 2, 3}, seqsIn(t.read(t.reopen(), "a", eventlog.All())))
}

func testBatchRolledBack(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), calls("kept"))
	call := calls("c1")
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), call, result("kept"), result("nobody"))
	t.refused(event.ErrInvalidResult, l, "a", eventlog.Any(), result("c1"))
	t.append(l, "a", eventlog.Any(), call)
	t.append(l, "a", eventlog.Any(), result("c1"))
	t.append(l, "a", eventlog.Any(), result("kept"))
	t.sound(l, "a")
}

const batchSize = 7

func testBatchVisible(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), notes(batchSize)...)
	var done atomic.Bool
	errs := together(4, func(i int) error {
		if i == 0 {
			defer done.Store(true)
			return appendBatches(t, l, 60)
		}
		for !done.Load() {
			if err := seesWhole(t, l, i); err != nil {
				return err
			}
		}
		return nil
	})
	t.must(errors.Join(errs...))
}

func appendBatches(t *env, l *eventlog.Log, n int) error {
	for range n {
		if _, err := l.Append(t.ctx, "a", eventlog.Any(), notes(batchSize)...); err != nil {
			return err
		}
	}
	return nil
}

var errTorn = errors.New("a reader saw a part of an append")

// seesWhole reads in one of three ways and looks at where the session ends.
func seesWhole(t *env, l *eventlog.Log, way int) error {
	r := []eventlog.Range{eventlog.All().Backward(), eventlog.All(), eventlog.Last(batchSize + 2)}[way-1]
	events, err := collect(l.Read(t.ctx, "a", r))
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

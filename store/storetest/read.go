package storetest

import (
	"math/rand/v2"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/verify"
)

var readCases = []testCase{
	{
		name:        "missing session",
		explanation: "Reading a session that does not exist is ErrNotFound for every range and method.",
		run:         testReadMissing,
	},
	{
		name:        "ranges",
		explanation: "From, Between, Last and Until select what they say, in either direction; Last comes oldest first.",
		run:         testReadRanges,
	},
	{
		name:        "until an event that is not there",
		explanation: "Until an id that does not occur reads everything and ends with ErrEventNotFound.",
		run: func(t *env) {
			t.fill(t.log(), "a", 3)
			for _, r := range []eventlog.Range{eventlog.Until(event.NewID()), eventlog.Until(event.NewID()).Backward()} {
				events, err := collect(t.log().Read(t.ctx, "a", r))
				t.wantErr(eventlog.ErrEventNotFound, err)
				t.same("events", 3, len(events))
			}
		},
	},
	{
		name:        "one event",
		explanation: "Event reads one event by seq; a seq that is not there is ErrEventNotFound.",
		run:         testReadOne,
	},
	{
		name:        "consistent with the head at its start",
		explanation: "A read that has begun yields the events up to the head it began at, while a writer goes on.",
		run:         testReadConsistent,
	},
	{
		name:        "many readers and a writer",
		explanation: "Readers at work while a writer appends see a whole, unbroken history each time.",
		run:         testReadContended,
	},
}

func testReadMissing(t *env) {
	l := t.log()
	t.fill(l, "b", 2)
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.All().Backward(), eventlog.Last(3), eventlog.Last(0), eventlog.From(5),
		eventlog.Between(1, 2), eventlog.Until(event.NewID()), eventlog.All().Own(), eventlog.Last(2000)} {
		_, err := collect(l.Read(t.ctx, "a", r))
		t.wantErr(eventlog.ErrNotFound, err)
	}
	t.missing(l, "a")
	_, err := l.Event(t.ctx, "a", 1)
	t.wantErr(eventlog.ErrNotFound, err)
	_, err = collect(l.Read(t.ctx, "a", eventlog.All().OnPath()))
	t.wantErr(eventlog.ErrNotFound, err)
	_, err = collect(l.Watch(t.ctx, "a", 1))
	t.wantErr(eventlog.ErrNotFound, err)
	_, err = verify.Session(t.ctx, l, "a")
	t.wantErr(eventlog.ErrNotFound, err)
}

// selection is a range and the seqs it selects.
type selection struct {
	name string
	r    eventlog.Range
	want []int64
}

func testReadRanges(t *env) {
	l := t.log()
	const n = 30
	for range 10 {
		t.append(l, "a", eventlog.Any(), notes(3)...)
	}
	events := t.read(l, "a", eventlog.All())
	random := rand.New(rand.NewPCG(8, 9))
	for range 60 {
		from, to := 1+random.Int64N(n), 1+random.Int64N(n)
		for _, s := range []selection{
			{"from", eventlog.From(from), between(from, n)},
			{"between", eventlog.Between(from, to), between(from, to)},
			{"last", eventlog.Last(int(to)), between(n-to+1, n)},
			{"until", eventlog.Until(events[to-1].ID), between(1, to)},
		} {
			t.same(s.name, s.want, seqsIn(t.read(l, "a", s.r)))
			if s.name == "until" {
				s.want = between(to, n)
			}
			slices.Reverse(s.want)
			t.same(s.name+" backward", s.want, seqsIn(t.read(l, "a", s.r.Backward())))
		}
	}
	t.same("last 0", []int64{}, seqsIn(t.read(l, "a", eventlog.Last(0))))
	t.same("last of more than all", between(1, n), seqsIn(t.read(l, "a", eventlog.Last(5000))))
	t.same("from beyond the head", []int64{}, seqsIn(t.read(l, "a", eventlog.From(n+1))))
}

// between are the seqs from..to.
func between(from, to int64) []int64 {
	seqs := []int64{}
	for seq := from; seq <= to; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

func testReadOne(t *env) {
	l := t.log()
	t.fill(l, "a", 5)
	all := t.read(l, "a", eventlog.All())
	for i := range all {
		e, err := l.Event(t.ctx, "a", all[i].Seq)
		t.must(err)
		t.same("line", string(all[i].Line()), string(e.Line()))
	}
	for _, seq := range []int64{-1, 0, 6, 1 << 40} {
		_, err := l.Event(t.ctx, "a", seq)
		t.wantErr(eventlog.ErrEventNotFound, err)
	}
}

func testReadConsistent(t *env) {
	l := t.log()
	t.append(l, "a", eventlog.New(), notes(1500)...)
	want := int64(1500)
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.All().Backward(), eventlog.Last(1500), eventlog.From(1)} {
		n := int64(0)
		for _, err := range l.Read(t.ctx, "a", r) {
			t.must(err)
			if n++; n == 1 || n == 1400 {
				t.append(l, "a", eventlog.Any(), notes(2)...)
			}
		}
		if r == eventlog.Last(1500) {
			t.same("events of the last 1500", int64(1500), n)
		} else {
			t.same("events", want, n)
		}
		want += 4
	}
}

func testReadContended(t *env) {
	l := t.log()
	t.fill(l, "a", 1)
	errs := together(4, func(i int) error {
		for range 40 {
			if i == 0 {
				if _, err := l.Append(t.ctx, "a", eventlog.Any(), notes(5)...); err != nil {
					return err
				}
				continue
			}
			events, err := collect(l.Read(t.ctx, "a", eventlog.All()))
			if err != nil {
				return err
			}
			if !slices.Equal(seqsIn(events), between(1, int64(len(events)))) {
				return errTorn
			}
		}
		return nil
	})
	for _, err := range errs {
		t.must(err)
	}
}

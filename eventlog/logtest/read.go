package logtest

import (
	"math/rand/v2"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/verify"
)

var readCases = []testCase{
	{
		Name:        "missing session",
		Explanation: "Reading a missing session is ErrNotFound for every range and method.",
		Run:         testReadMissing,
	},
	{
		Name:        "ranges",
		Explanation: "From, Between, Last and Until select their events in both directions. Last yields the oldest event first.",
		Run:         testReadRanges,
	},
	{
		Name:        "until a missing event",
		Explanation: "Until with a missing id reads everything and ends with ErrEventNotFound.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 3)
			for _, r := range []eventlog.Range{eventlog.All().Until(event.NewID()), eventlog.All().Until(event.NewID()).Backward()} {
				events, err := suite.Collect(t.Main().Read(t.Ctx, "a", r))
				t.WantErr(eventlog.ErrEventNotFound, err)
				t.WantEqual("events", 3, len(events))
			}
		},
	},
	{
		Name:        "one event",
		Explanation: "Event reads one event by seq. A missing seq is ErrEventNotFound.",
		Run:         testReadOne,
	},
	{
		Name:        "ends at the head of its start",
		Explanation: "A read yields the events up to the head at its start, even if a writer appends during the read.",
		Run:         testReadConsistent,
	},
	{
		Name:        "many readers and a writer",
		Explanation: "Each read during concurrent appends returns a complete history without gaps.",
		Run:         testReadContended,
	},
}

func testReadMissing(t *env) {
	l := t.Main()
	t.Fill(l, "b", 2)
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.All().Backward(), eventlog.Last(3), eventlog.Last(0), eventlog.From(5),
		eventlog.Between(1, 2), eventlog.All().Until(event.NewID()), eventlog.All().Own(), eventlog.Last(2000)} {
		_, err := suite.Collect(l.Read(t.Ctx, "a", r))
		t.WantErr(eventlog.ErrNotFound, err)
	}
	t.WantMissing(l, "a")
	_, err := l.Event(t.Ctx, "a", 1)
	t.WantErr(eventlog.ErrNotFound, err)
	_, err = suite.Collect(l.Read(t.Ctx, "a", eventlog.All().OnPath()))
	t.WantErr(eventlog.ErrNotFound, err)
	_, err = suite.Collect(l.Watch(t.Ctx, "a", 1))
	t.WantErr(eventlog.ErrNotFound, err)
	_, err = verify.Session(t.Ctx, l, "a")
	t.WantErr(eventlog.ErrNotFound, err)
}

// selection is a range and the seqs it selects.
type selection struct {
	name string
	r    eventlog.Range
	want []int64
}

func testReadRanges(t *env) {
	l := t.Main()
	const n = 30
	for range 10 {
		t.Append(l, "a", eventlog.Any(), suite.Notes(3)...)
	}
	events := t.Read(l, "a", eventlog.All())
	random := rand.New(rand.NewPCG(8, 9))
	for range testsize.Fewer(60) {
		from, to := 1+random.Int64N(n), 1+random.Int64N(n)
		for _, s := range []selection{
			{"from", eventlog.From(from), between(from, n)},
			{"between", eventlog.Between(from, to), between(from, to)},
			{"last", eventlog.Last(int(to)), between(n-to+1, n)},
			{"until", eventlog.All().Until(events[to-1].ID), between(1, to)},
		} {
			t.WantEqual(s.name, s.want, suite.SeqsOf(t.Read(l, "a", s.r)))
			if s.name == "until" {
				s.want = between(to, n)
			}
			slices.Reverse(s.want)
			t.WantEqual(s.name+" backward", s.want, suite.SeqsOf(t.Read(l, "a", s.r.Backward())))
		}
	}
	t.WantEqual("last 0", []int64{}, suite.SeqsOf(t.Read(l, "a", eventlog.Last(0))))
	t.WantEqual("last of more than all", between(1, n), suite.SeqsOf(t.Read(l, "a", eventlog.Last(5000))))
	t.WantEqual("from beyond the head", []int64{}, suite.SeqsOf(t.Read(l, "a", eventlog.From(n+1))))
}

// between returns the seqs from..to.
func between(from, to int64) []int64 {
	seqs := []int64{}
	for seq := from; seq <= to; seq++ {
		seqs = append(seqs, seq)
	}
	return seqs
}

func testReadOne(t *env) {
	l := t.Main()
	t.Fill(l, "a", 5)
	all := t.Read(l, "a", eventlog.All())
	for i := range all {
		e, err := l.Event(t.Ctx, "a", all[i].Seq)
		t.Must(err)
		t.WantEqual("line", string(all[i].Line()), string(e.Line()))
	}
	for _, seq := range []int64{-1, 0, 6, 1 << 40} {
		_, err := l.Event(t.Ctx, "a", seq)
		t.WantErr(eventlog.ErrEventNotFound, err)
	}
}

func testReadConsistent(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Notes(1500)...)
	want := int64(1500)
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.All().Backward(), eventlog.Last(1500), eventlog.From(1)} {
		n := int64(0)
		for _, err := range l.Read(t.Ctx, "a", r) {
			t.Must(err)
			if n++; n == 1 || n == 1400 {
				t.Append(l, "a", eventlog.Any(), suite.Notes(2)...)
			}
		}
		if r == eventlog.Last(1500) {
			t.WantEqual("events of the last 1500", int64(1500), n)
		} else {
			t.WantEqual("events", want, n)
		}
		want += 4
	}
}

func testReadContended(t *env) {
	l := t.Main()
	t.Fill(l, "a", 1)
	errs := suite.Concurrently(4, func(i int) error {
		for range testsize.Fewer(40) {
			if i == 0 {
				if _, err := l.Append(t.Ctx, "a", eventlog.Any(), suite.Notes(5)...); err != nil {
					return err
				}
				continue
			}
			events, err := suite.Collect(l.Read(t.Ctx, "a", eventlog.All()))
			if err != nil {
				return err
			}
			if !slices.Equal(suite.SeqsOf(events), between(1, int64(len(events)))) {
				return errTorn
			}
		}
		return nil
	})
	for _, err := range errs {
		t.Must(err)
	}
}

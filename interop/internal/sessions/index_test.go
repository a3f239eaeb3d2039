package sessions

import (
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// entry is a record of a test: a message with an own id or none.
type entry struct{ own, text string }

func (r entry) key() Key { return Key{Own: r.own, Digest: event.DigestOf([]byte(r.own + r.text))} }

func (r entry) message() event.Message {
	role := event.User
	if r.text == "answer" {
		role = event.Assistant
	}
	return event.Message{Role: role, Parts: []event.Part{event.Text(r.text)}}
}

func (r entry) shape() Shape { return ShapeOf(r.message(), "raw:x") }

// take imports records into session s. It returns what became of each: the seq, with a
// minus sign if the record is withheld, or 0 if it is new.
func take(t *testing.T, log *eventlog.Log, entries ...entry) (found []int64) {
	t.Helper()
	s, err := Open(t.Context(), log, "s", func(*event.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range entries {
		m := s.Find(r.key(), r.shape)
		if found = append(found, m.Seq); m.Withheld {
			found[len(found)-1] = -m.Seq
		}
		if m.Seq > 0 {
			continue
		}
		rec := records.Record{Source: "f", Digest: r.key().Digest}
		e, err := rec.EventOf(r.message(), rec.Whole(0))
		if err != nil {
			t.Fatal(err)
		}
		s.Add(r.key(), time.Unix(s.Seq(), 0), e)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return found
}

// The rules of Session.Find, one by one. All records of before are imported, some are
// redacted, and the records of after find these events.
func TestFind(t *testing.T) {
	a, b, c, answer := entry{"", "a"}, entry{"", "b"}, entry{"", "c"}, entry{"", "answer"}
	own, changed, other := entry{"u1", "a"}, entry{"u1", "b"}, entry{"u2", "a"}
	for name, test := range map[string]struct {
		before []entry
		redact []int64
		after  []entry
		want   []int64
	}{
		"unchanged":                             {[]entry{a, own, b}, nil, []entry{a, own, b}, []int64{1, 2, 3}},
		"equal records":                         {[]entry{a, a, b}, nil, []entry{a, a, a, b}, []int64{1, 2, 0, 3}},
		"own id, redacted":                      {[]entry{own, b}, []int64{1}, []entry{own, b}, []int64{-1, 2}},
		"own id, redacted and changed":          {[]entry{own, b}, []int64{1}, []entry{changed, b}, []int64{-1, 2}},
		"own id, changed":                       {[]entry{own, b}, nil, []entry{changed, own}, []int64{0, 1}},
		"own id, a variant is redacted":         {[]entry{own, changed}, []int64{2}, []entry{own, changed}, []int64{1, -2}},
		"another own id":                        {[]entry{own, b}, []int64{1}, []entry{other, b}, []int64{0, 2}},
		"place":                                 {[]entry{a, b, c}, []int64{2}, []entry{a, b, c}, []int64{1, -2, 3}},
		"place, all redacted":                   {[]entry{a, answer, c}, []int64{1, 2, 3}, []entry{a, answer, c, b}, []int64{-1, -2, -3, 0}},
		"equal records, the first is redacted":  {[]entry{a, b, a}, []int64{1}, []entry{a, b, a}, []int64{-1, 2, 3}},
		"equal records, the middle is redacted": {[]entry{a, b, a, c, a}, []int64{3}, []entry{a, b, a, c, a}, []int64{1, 2, -3, 4, 5}},
		"equal records, the last is redacted":   {[]entry{a, b, a}, []int64{3}, []entry{a, b, a}, []int64{1, 2, -3}},
		"another order":                         {[]entry{a, b, c}, []int64{1}, []entry{c, b, a}, []int64{-1, 2, -1}},
		"the source dropped the redacted":       {[]entry{a, b, answer}, []int64{2}, []entry{a, answer}, []int64{1, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(memory.New())
			defer log.Close()
			take(t, log, test.before...)
			if len(test.redact) > 0 {
				if _, err := erase.Redact(t.Context(), log, "s", test.redact); err != nil {
					t.Fatal(err)
				}
			}
			if got := take(t, log, test.after...); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

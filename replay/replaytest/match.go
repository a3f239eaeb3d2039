package replaytest

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/convlog/convlog/event"
)

// matcher compares events of a run with recorded events, in order. It maps the
// recorded ids and seqs to the ids and seqs of the run.
type matcher struct {
	opts Options
	// toGot maps recorded ids to ids of the run, toRecorded the reverse.
	toGot, toRecorded map[string]string
	// seqs maps recorded seqs to seqs of the run.
	seqs map[int64]int64
}

func newMatcher(opts Options) *matcher {
	return &matcher{opts: opts, toGot: map[string]string{}, toRecorded: map[string]string{}, seqs: map[int64]int64{}}
}

// relevant leaves out events of ignored types.
func (m *matcher) relevant(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for e, err := range events {
			if err == nil && slices.Contains(m.opts.IgnoreTypes, e.Type.Name()) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// events compares two events. The error is invalid JSON.
func (m *matcher) events(recorded, got *event.Event) (*Divergence, error) {
	m.seqs[recorded.Seq] = got.Seq
	differ := func(member, want, have string) (*Divergence, error) {
		return &Divergence{Recorded: recorded, Got: got, Member: member, RecordedValue: want, GotValue: have}, nil
	}
	if recorded.Type != got.Type {
		return differ("type", strconv.Quote(string(recorded.Type)), strconv.Quote(string(got.Type)))
	}
	if !m.ids(recorded.ID.String(), got.ID.String()) {
		return differ("id", recorded.ID.String(), got.ID.String())
	}
	if !m.ids(recorded.SessionID, got.SessionID) {
		return differ("session_id", recorded.SessionID, got.SessionID)
	}
	if recorded.Cost != got.Cost {
		return differ("cost", recorded.Cost.String(), got.Cost.String())
	}
	for _, c := range m.contents(recorded, got) {
		d, err := m.values(c.location, c.recorded, c.got)
		if err != nil {
			return nil, fmt.Errorf("compare %v with %v: %w", recorded, got, err)
		}
		if d != nil {
			d.Recorded, d.Got = recorded, got
			return d, nil
		}
	}
	return nil, nil
}

// content is a JSON value of two events.
type content struct {
	location
	recorded, got []byte
}

// contents returns the JSON values of two events to compare.
func (m *matcher) contents(recorded, got *event.Event) (list []content) {
	data := location{path: "data", typed: recorded.Type.Known() && recorded.Type.Name() != event.AccountingFlushed}
	if recorded.Redacted() || got.Redacted() {
		if recorded.Redacted() && got.Redacted() {
			data.path = "kept"
			list = append(list, content{data, recorded.Kept(), got.Kept()})
		}
		return list
	}
	list = append(list, content{data, recorded.Data, got.Data})
	list = append(list, content{location{path: "extras"}, object(recorded.Extras()), object(got.Extras())})
	if !m.opts.IgnoreMetadata {
		list = append(list, content{location{path: "metadata"}, orEmpty(recorded.Metadata), orEmpty(got.Metadata)})
	}
	return list
}

func object(members []byte) []byte { return slices.Concat([]byte{'{'}, members, []byte{'}'}) }

func orEmpty(value []byte) []byte {
	if len(value) == 0 {
		return []byte("{}")
	}
	return value
}

// ids reports whether a recorded id and an id of the run match: the same pair
// everywhere, and neither in another pair.
func (m *matcher) ids(recorded, got string) bool {
	g, known := m.toGot[recorded]
	r, used := m.toRecorded[got]
	if !known && !used {
		m.toGot[recorded], m.toRecorded[got] = got, recorded
		return true
	}
	return g == got && r == recorded
}

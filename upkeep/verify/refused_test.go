package verify_test

import (
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

func each(events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// An event that is not the event of its line is an error, and is not adopted.
func TestEventOfAnotherLine(t *testing.T) {
	log := eventlog.Open(memory.New())
	if _, err := log.Append(t.Context(), "a", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	var stored event.Event
	for e, err := range log.Read(t.Context(), "a", eventlog.All()) {
		if stored = e; err != nil {
			t.Fatal(err)
		}
	}
	renamed, moved, unstored := stored, stored, event.UserMessage("hello")
	renamed.SessionID = "b"
	moved.SessionID, moved.Seq = "a", 2
	unstored.SessionID, unstored.Seq = "b", 1
	for name, test := range map[string]struct {
		e     event.Event
		cause error
	}{
		"of another session": {renamed, line.ErrSession},
		"with another seq":   {moved, line.ErrMalformed},
		"not stored":         {unstored, line.ErrMalformed},
	} {
		if _, err := verify.New(log).Events(t.Context(), test.e.SessionID, each(test.e)); !errors.Is(err, test.cause) {
			t.Errorf("%s: verify gives %v", name, err)
		}
		other := eventlog.Open(memory.New())
		if _, err := transfer.Adopt(t.Context(), other, test.e.SessionID, each(test.e)); err == nil {
			t.Errorf("%s: adoption gives %v", name, err)
		}
		if _, err := other.Head(t.Context(), test.e.SessionID); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("%s: something was adopted: %v", name, err)
		}
	}
}

// Data that is not compact JSON is reported, and nothing else is concluded from it.
func TestRefusedDataSaysNothing(t *testing.T) {
	type spec struct {
		name event.Type
		data string
	}
	message := spec{event.MessageAdded, `{"role":"user","parts":[{"type":"text","text":"a"}]}`}
	note := spec{event.Redacted, `{"seqs":[1], "reason":"x"}`}
	for name, test := range map[string]struct {
		specs  []spec
		erased bool
		want   []string
	}{
		"a redaction of an erased event":  {[]spec{message, note}, true, []string{"payload", "redaction"}},
		"a redaction of an intact event":  {[]spec{message, note}, false, []string{"payload"}},
		"a claim before another":          {[]spec{{event.RunClaimed, `{"epoch":1, "runner":"x"}`}, {event.RunClaimed, `{"epoch":2,"runner":"x"}`}}, false, []string{"claim", "payload"}},
		"a message with white space":      {[]spec{{event.MessageAdded, `{"role":"tool", "parts":[]}`}}, false, []string{"payload"}},
		"an unknown type with a bad text": {[]spec{{"x:y", `{"a":"\ud800"}`}}, false, []string{"payload"}},
	} {
		var events []event.Event
		var prev line.Hash
		for i, s := range test.specs {
			l := line.Line{Seq: int64(i + 1), ID: event.NewID(), Session: "s", Type: string(s.name), Timestamp: time.Unix(1, 0), Data: []byte(s.data)}
			text := l.Append(nil, prev, [16]byte{1})
			if prev = l.Hash(); i == 0 && test.erased {
				text = l.Erase([]byte(`{"role":"user"}`))
			}
			e, err := event.Parse(text, "s")
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		report, err := verify.New(eventlog.Open(memory.New())).Events(t.Context(), "s", each(events...))
		var got []string
		for _, d := range slices.Concat(report.Defects, report.Notes) {
			got = append(got, d.Rule)
		}
		slices.Sort(got)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: found %q, %v; want %q", name, got, err, test.want)
		}
	}
}

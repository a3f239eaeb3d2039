package replaytest

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
)

// Options configure a comparison. The zero value compares everything but what the
// package comment excludes.
type Options struct {
	// Update makes Open record the run anew instead of answering it. Set it from a flag
	// of the test: flag.Bool("update", false, "record anew").
	Update bool
	// IgnoreMetadata leaves out metadata.
	IgnoreMetadata bool
	// IgnoreMembers leaves out members of payloads and metadata, by name at any depth
	// ("cwd"), or by place ("data.parts[0].extra").
	IgnoreMembers []string
	// IgnoreTypes leaves out events on both sides, whatever their payload
	// version is.
	IgnoreTypes []event.Type
}

// Divergence is the first point where a run and its recording part.
type Divergence struct {
	// Recorded and Got are the events there; nil where a side has ended.
	Recorded, Got *event.Event
	// Member is what differs: "type", "cost", a place in the payload such as
	// "data.parts[0].text", or in "metadata" or "extras". It is empty where a side
	// has ended.
	Member string
	// RecordedValue and GotValue are the member's values as JSON; empty where there is
	// none.
	RecordedValue, GotValue string
}

// Seq is that of the recorded event or, behind the recording's end, of the
// run's.
func (d *Divergence) Seq() int64 { return d.event().Seq }

// Type is that of the same event as Seq.
func (d *Divergence) Type() event.Type { return d.event().Type }

func (d *Divergence) event() *event.Event {
	if d.Recorded != nil {
		return d.Recorded
	}
	return d.Got
}

func (d *Divergence) String() string {
	switch {
	case d.Got == nil:
		return fmt.Sprintf("the run ends before event %d of the recording, %s", d.Seq(), d.Type())
	case d.Recorded == nil:
		return fmt.Sprintf("the run goes on behind the recording with event %d, %s", d.Seq(), d.Type())
	}
	return fmt.Sprintf("the run parts from the recording at event %d, %s, in %s:\n\trecorded: %s\n\tgot:      %s",
		d.Seq(), d.Type(), d.Member, shown(d.RecordedValue), shown(d.GotValue))
}

// shown is a value for a message.
func shown(value string) string {
	const most = 500
	switch {
	case value == "":
		return "nothing"
	case len(value) > most:
		return value[:most] + "…"
	}
	return value
}

// Compare fails the test, and goes on, at the first point where got parts from
// what was recorded. An error of either ends the test. At most one Options is
// used.
func Compare(t testing.TB, recorded, got iter.Seq2[event.Event, error], opts ...Options) {
	t.Helper()
	d, err := Diverges(recorded, got, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if d != nil {
		t.Error(d)
	}
}

// Diverges finds the first point where got parts from what was recorded; nil
// where they are alike to the end. It reads no further than that. An error of
// either is returned as that of the recording or the run. At most one Options
// is used.
func Diverges(recorded, got iter.Seq2[event.Event, error], opts ...Options) (*Divergence, error) {
	m := newMatcher(slices.Concat(opts, []Options{{}})[0])
	want, stopRecorded := iter.Pull2(m.relevant(recorded))
	defer stopRecorded()
	have, stopGot := iter.Pull2(m.relevant(got))
	defer stopGot()
	for {
		w, wantErr, more := want()
		h, haveErr, moreGot := have()
		switch {
		case wantErr != nil:
			return nil, fmt.Errorf("read the recording: %w", wantErr)
		case haveErr != nil:
			return nil, fmt.Errorf("read the run: %w", haveErr)
		case !more && !moreGot:
			return nil, nil
		case !more:
			return &Divergence{Got: &h}, nil
		case !moreGot:
			return &Divergence{Recorded: &w}, nil
		}
		if d, err := m.events(&w, &h); d != nil || err != nil {
			return d, err
		}
	}
}

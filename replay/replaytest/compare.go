package replaytest

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/convlog/convlog/event"
)

// Options configure a comparison. The zero value compares everything except the ids,
// times and hashes that the package comment lists.
type Options struct {
	// Update makes Open record a new run instead of answering it. Set it from a flag
	// of the test: flag.Bool("update", false, "record new sessions").
	Update bool
	// IgnoreMetadata leaves out metadata.
	IgnoreMetadata bool
	// IgnoreMembers leaves out members of payloads and metadata, by name at any depth
	// ("cwd"), or by path ("data.parts[0].extra").
	IgnoreMembers []string
	// IgnoreTypes leaves out events of these types on both sides, in any payload
	// version.
	IgnoreTypes []event.Type
}

// Divergence is the first difference between a run and its recording.
type Divergence struct {
	// Recorded and Got are the events with the difference; nil if the side has ended.
	Recorded, Got *event.Event
	// Member is the different member: "type", "cost", or a path in the payload, in
	// "metadata" or in "extras", for example "data.parts[0].text". It is empty if a
	// side has ended.
	Member string
	// RecordedValue and GotValue are the member's values as JSON; empty if a side
	// lacks the member.
	RecordedValue, GotValue string
}

// Seq is the seq of the recorded event. If the recording has ended, it is the seq of
// the run's event.
func (d *Divergence) Seq() int64 { return d.event().Seq }

// Type is the type of the event of Seq.
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
		return fmt.Sprintf("the run continues after the end of the recording with event %d, %s", d.Seq(), d.Type())
	}
	return fmt.Sprintf("the run differs from the recording at event %d, %s, in %s:\n\trecorded: %s\n\tgot:      %s",
		d.Seq(), d.Type(), d.Member, shorten(d.RecordedValue), shorten(d.GotValue))
}

// shorten returns a value for a message.
func shorten(value string) string {
	const limit = 500
	switch {
	case value == "":
		return "nothing"
	case len(value) > limit:
		return value[:limit] + "…"
	}
	return value
}

// Compare reports a test error at the first difference between recorded and got; the
// test continues. A read error of either ends the test. Compare uses the first of
// several Options.
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

// Diverges returns the first difference between recorded and got, or nil if there is
// none. It reads no further than the difference. A read error says whether the
// recording or the run failed. Diverges uses the first of several Options.
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

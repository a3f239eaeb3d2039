package jetstream

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// A frame is the message of one append. Its body has the lines of the append, separated
// by newlines. Its header Convlog describes it, for example
//
//	v=1 id=… first=12 count=2 hash=… n=7 bytes=9120 start=1:55 back=11:90,3:60
//
// FORMAT.md has the fields.
const frameHeader = "Convlog"

// tombstone is the header Convlog of the message that removes a session.
const tombstone = "removed"

// frame is a decoded message.
type frame struct {
	at    uint64 // sequence in the stream; of the original if the frame was replaced
	id    string // of the append
	first int64  // seq of the first event
	count int64  // number of events; 0 for a frame that only names an index
	hash  event.Hash
	n     int64    // number of frames before
	bytes int64    // of all lines of the session up to here, a newline each counted
	start place    // the first frame; at is 0 if this is the first
	index uint64   // the sequence of the index of replaced frames; 0 if there is none
	back  []place  // earlier frames, from the nearest one
	lines [][]byte // of the body

	watermark uint64 // the sequence of the session's watermark; 0 if the writer knew none
}

// place locates a frame by its first event.
type place struct {
	first int64
	at    uint64
}

var (
	errFrame   = errors.New("the header Convlog of a message is missing or malformed")
	errCount   = errors.New("a message has another number of lines than its header says")
	errMissing = errors.New("message is missing")
	errLong    = fmt.Errorf("the line is longer than %d bytes", longestLine)
)

// longestLine is the length of the longest line that a log writes, with a margin.
const longestLine = 8<<20 + 128<<10

// head is the head of the session after the frame.
func (f *frame) head() event.Head { return event.Head{Seq: f.next() - 1, Hash: f.hash} }

// next is the seq of the event after the frame.
func (f *frame) next() int64 { return f.first + f.count }

// place is the place of the frame.
func (f *frame) place() place { return place{f.first, f.at} }

// follows reports whether the frame was appended after the message at.
func (f *frame) follows(at uint64) bool {
	if len(f.back) == 0 {
		return at == 0
	}
	return f.back[0].at == at
}

// beginning is the place of the first frame of the session.
func (f *frame) beginning() place {
	if f.start.at == 0 {
		return place{f.start.first, f.at}
	}
	return f.start
}

// skipBase is the distance of the places in back: place k is the nearest earlier frame
// whose number is a multiple of skipBase to the power of k.
const skipBase = 16

// follow describes a frame of events after f; nil if they begin a session.
func (f *frame) follow(events []event.Event) *frame {
	next := &frame{id: newID(), count: int64(len(events)), bytes: lineBytes(events)}
	if f != nil {
		next.first, next.hash, next.n, next.index, next.watermark = f.next(), f.hash, f.n+1, f.index, f.watermark
		next.bytes += f.bytes
		next.start, next.back = f.beginning(), f.skip()
	}
	if len(events) > 0 {
		next.first, next.hash = events[0].Seq, events[len(events)-1].Hash()
	}
	if f == nil {
		next.start = place{first: next.first}
	}
	for i := range events {
		next.lines = append(next.lines, events[i].Line())
	}
	return next
}

// skip is back of the frame after f.
func (f *frame) skip() (back []place) {
	back = append(back, f.place())
	for k, step := 1, int64(skipBase); step <= f.n; k, step = k+1, step*skipBase {
		if f.n%step == 0 {
			back = append(back, f.place())
		} else if k < len(f.back) {
			back = append(back, f.back[k])
		}
	}
	return back
}

// describe renders the header Convlog.
func (f *frame) describe() string {
	b := fmt.Appendf(nil, "v=%d id=%s first=%d count=%d hash=%s n=%d bytes=%d start=%d:%d",
		formatVersion, f.id, f.first, f.count, f.hash, f.n, f.bytes, f.start.first, f.start.at)
	if f.index > 0 {
		b = fmt.Appendf(b, " index=%d", f.index)
	}
	if f.watermark > 0 {
		b = fmt.Appendf(b, " watermark=%d", f.watermark)
	}
	for i, p := range f.back {
		sep := ","
		if i == 0 {
			sep = " back="
		}
		b = fmt.Appendf(b, "%s%d:%d", sep, p.first, p.at)
	}
	return string(b)
}

// message renders the frame as a message. It is stored if expect is the sequence of the
// last message of the subject.
func (f *frame) message(subject string, expect uint64) *nats.Msg {
	m := &nats.Msg{Subject: subject, Header: make(nats.Header, 3), Data: bytes.Join(f.lines, []byte{'\n'})}
	m.Header[frameHeader] = []string{f.describe()}
	expectLast(m, expect)
	return m
}

// expectLast makes a message conditional on the last sequence of its subject.
func expectLast(m *nats.Msg, seq uint64) {
	m.Header["Nats-Expected-Last-Subject-Sequence"] = []string{strconv.FormatUint(seq, 10)}
}

// parseFrame decodes a message. removed is true for a tombstone.
func parseFrame(m *message) (f *frame, removed bool, err error) {
	f = &frame{at: m.at}
	if len(m.body) > 0 {
		f.lines = bytes.Split(m.body, []byte{'\n'})
	}
	text := ""
	if values := m.header[frameHeader]; len(values) > 0 {
		text = values[0]
	}
	if text == tombstone {
		return f, true, nil
	}
	return f, false, f.parse(text)
}

// parse decodes the header Convlog. Unknown fields are skipped.
func (f *frame) parse(text string) (err error) {
	version := 0
	for field := range strings.SplitSeq(text, " ") {
		name, value, _ := strings.Cut(field, "=")
		if err == nil {
			switch name {
			case "v":
				version, err = strconv.Atoi(value)
			case "id":
				f.id = value
			case "first":
				f.first, err = strconv.ParseInt(value, 10, 64)
			case "count":
				f.count, err = strconv.ParseInt(value, 10, 64)
			case "hash":
				err = f.hash.UnmarshalText([]byte(value))
			case "n":
				f.n, err = strconv.ParseInt(value, 10, 64)
			case "bytes":
				f.bytes, err = strconv.ParseInt(value, 10, 64)
			case "index":
				f.index, err = strconv.ParseUint(value, 10, 64)
			case "watermark":
				f.watermark, err = strconv.ParseUint(value, 10, 64)
			case "start":
				f.start, err = parsePlace(value)
			case "back":
				for one := range strings.SplitSeq(value, ",") {
					var p place
					if p, err = parsePlace(one); err != nil {
						break
					}
					f.back = append(f.back, p)
				}
			}
		}
	}
	switch {
	case version > formatVersion:
		return &event.VersionError{What: "jetstream message", Got: version, Max: formatVersion}
	case err != nil || version < 1 || !f.plausible():
		return errFrame
	}
	return nil
}

// plausible reports whether the numbers of a frame fit together. Places lead to earlier
// messages, so a reader that follows them ends.
func (f *frame) plausible() bool {
	if f.first < 1 || f.count < 0 || f.first > maxSeq-f.count || f.start.first < 1 || f.start.first > f.first || f.start.at >= f.at || f.index >= f.at {
		return false
	}
	if isFirst := f.n == 0; f.n < 0 || isFirst != (f.start.at == 0) || isFirst != (len(f.back) == 0) {
		return false
	}
	first, at := f.first, f.at
	for i, p := range f.back {
		if p.at >= at && i == 0 || p.at > at || p.first > first || p.first < 1 {
			return false
		}
		first, at = p.first, p.at
	}
	return true
}

const maxSeq = 1<<62 - 1

func parsePlace(text string) (p place, err error) {
	first, at, _ := strings.Cut(text, ":")
	if p.first, err = strconv.ParseInt(first, 10, 64); err == nil {
		p.at, err = strconv.ParseUint(at, 10, 64)
	}
	return p, err
}

// event parses the line of an event of the frame.
func (f *frame) event(session, path string, seq int64) (event.Event, error) {
	e, err := f.parseLine(session, seq)
	var newer *event.VersionError
	switch {
	case err == nil:
		return e, nil
	case errors.As(err, &newer):
		return e, fmt.Errorf("session %q, seq %d: %w", session, seq, err)
	}
	return event.Event{}, &eventlog.CorruptError{Session: session, Path: path, Offset: -1, Seq: seq, Cause: err}
}

func (f *frame) parseLine(session string, seq int64) (event.Event, error) {
	i := seq - f.first
	switch {
	case i < 0 || i >= int64(len(f.lines)):
		return event.Event{}, errCount
	case len(f.lines[i]) > longestLine:
		return event.Event{}, errLong
	}
	e, err := event.Parse(f.lines[i], session)
	switch {
	case err != nil:
		return e, err
	case e.Seq != seq:
		return e, fmt.Errorf("the message has the line of seq %d", e.Seq)
	case i == f.count-1 && (e.Hash() != f.hash || int64(len(f.lines)) != f.count):
		return e, fmt.Errorf("%w, or another hash", errCount)
	case seq == f.beginning().first && seq > 1 && e.Type.Name() != event.SessionForked:
		return e, fmt.Errorf("a session that is no fork begins with seq %d", seq)
	}
	return e, nil
}

// lineBytes is the size of the events' lines, including one newline each.
func lineBytes(events []event.Event) (n int64) {
	for i := range events {
		n += int64(len(events[i].Line())) + 1
	}
	return n
}

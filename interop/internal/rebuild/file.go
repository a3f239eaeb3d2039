package rebuild

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/writing"
)

// Builder makes the record of an event again. It returns nil for an event without a record.
type Builder func(c *Choices, e *event.Event) (jsontext.Value, error)

// Line is a line of a file.
type Line struct {
	records.Origin
	// Session is the session that has the event, and Event the event, without its data.
	Session string
	Event   event.Event
	// Record is nil for an erased line, until the format has a placeholder for it.
	Record jsontext.Value
	// Same says that the record has the bytes of the imported file, Erased that its content is
	// erased, or repeats erased content.
	Same, Erased bool
	file         int
}

// Lines makes the records of a session again, in the order of its files. First come the
// records on its path that it shares with its ancestors.
func Lines(ctx context.Context, log *eventlog.Log, session string, build Builder) (all []Line, err error) {
	files, c := map[string]int{}, &Choices{likely: map[string]int{}}
	var last records.Origin
	read := func(r eventlog.Range, own bool) error {
		for e, err := range log.Read(ctx, session, r) {
			if err != nil {
				return err
			}
			l, ok := lineOf(&e)
			if !ok || (e.SessionID == session) != own {
				continue
			}
			if l.Erased { // its place is erased too
				l.Origin = last
			} else {
				last = l.Origin
				l.Record, l.Same, err = c.search(l.Bytes, l.Digest, func(c *Choices) (jsontext.Value, error) { return build(c, &e) })
			}
			if err != nil {
				return fmt.Errorf("session %q: event %d: %w", session, e.Seq, err)
			}
			key := e.SessionID + "\x00" + l.Source
			if _, known := files[key]; !known {
				files[key] = len(files)
			}
			l.Record, l.file = l.Record.Clone(), files[key]
			l.Erased = l.Erased || l.Record == nil // the record repeats erased content
			all = append(all, l)
		}
		return nil
	}
	if err := read(eventlog.All().OnPath(), false); err != nil {
		return nil, err
	}
	if err := read(eventlog.All().Own(), true); err != nil {
		return nil, err
	}
	Sort(all)
	return all, nil
}

// Sort sorts lines by their places in their files.
func Sort(lines []Line) {
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(a.file-b.file, cmp.Compare(a.Origin.Line, b.Origin.Line), cmp.Compare(a.Offset, b.Offset))
	})
}

// lineOf is the place of the event's record; ok is false for an event that does not hold all
// of a record. An erased event may be of a record if it is of the session's conversation.
func lineOf(e *event.Event) (l Line, ok bool) {
	l.Session, l.Erased = e.SessionID, e.Redacted()
	l.Event = event.Event{Seq: e.Seq, Type: e.Type, Timestamp: e.Timestamp}
	if l.Erased {
		l.Event = e.Clone()
		return l, e.Type.Name() == event.MessageAdded
	}
	v, ok := e.MetadataValue(records.OriginKey)
	if !ok || json.Unmarshal(v, &l.Origin) != nil {
		return l, false
	}
	return l, l.Part == 0 && l.Bytes > 0
}

// Text is a member of the record that is a text.
func (l *Line) Text(name string) string {
	if l.Record == nil {
		return ""
	}
	v, _, _ := rawjson.Lookup(l.Record, name) // a record without it has none
	s, _ := rawjson.Text(v)
	return s
}

// Stamp is the time of the line.
func (l *Line) Stamp() string { return writing.Stamp(l.Event.Timestamp) }

// ErasedText is in the place of an erased text.
const ErasedText = "[erased]"

// Outline is what a redaction keeps of a message.
type Outline struct {
	Role       event.Role `json:"role"`
	ResponseID string     `json:"response_id"`
	Calls      []string   `json:"calls"`
	Results    []string   `json:"results"`
}

// Outline is the outline of an erased message; ok is false for other events.
func (l *Line) Outline() (o Outline, ok bool) {
	if !l.Erased || l.Event.Type.Name() != event.MessageAdded {
		return o, false
	}
	o, err := event.DecodeKept[Outline](&l.Event)
	return o, err == nil && o.Role != ""
}

// FillErased puts a record in the place of each erased message that another record follows: the
// id of the message is erased, and the other record names it as its parent, which no record is.
// build makes the record; parent is a string or null.
func FillErased(lines []Line, idName, parentName string, build func(l *Line, o Outline, id string, parent jsontext.Value) jsontext.Value) {
	known := map[string]bool{"": true}
	for i := range lines {
		known[lines[i].Text(idName)] = true
	}
	next, parent := 0, jsontext.Value("null")
	for i := range lines {
		l := &lines[i]
		if o, ok := l.Outline(); ok && l.Record == nil {
			for next = max(next, i+1); next < len(lines) && known[lines[next].Text(parentName)]; {
				next++
			}
			if next < len(lines) {
				id := lines[next].Text(parentName)
				l.Record, known[id] = build(l, o, id, parent), true
			}
		}
		if id := l.Text(idName); id != "" {
			parent = Quote(id)
		}
	}
}

// Restored is the file of a session, and what it has.
func Restored(path, session string, lines []Line) written.Restored {
	r := written.Restored{Path: path}
	var body bytes.Buffer
	for i := range lines {
		l := &lines[i]
		if l.Record == nil && !l.Erased {
			continue
		}
		r.Records++
		switch isOwn := l.Session == session || strings.HasPrefix(l.Session, session+"."); {
		case l.Erased:
			r.Erased++
		case !l.Same: // an import compares the bytes of shared records too
		case !isOwn:
			r.Shared++
		default:
			r.Same++
		}
		if l.Record != nil {
			body.Write(l.Record)
			body.WriteByte('\n')
		}
	}
	r.Body = body.Bytes()
	return r
}

// Bodies returns a function that reads the body of a part.
func Bodies(ctx context.Context, log *eventlog.Log) func(p *event.Part) ([]byte, error) {
	read := interop.Bodies(ctx, log)
	return func(p *event.Part) ([]byte, error) {
		if p.Blob.IsZero() {
			return p.Data, nil
		}
		return read(p.Blob)
	}
}

// Base is the last name in the path of a source, which may be of another system.
func Base(source string) string { return source[strings.LastIndexAny(source, `/\`)+1:] }

// Below is the part of a path after the last folder with a name, with slashes; empty if the
// path has no such folder.
func Below(source, folder string) string {
	source = strings.ReplaceAll(source, `\`, "/")
	if at := strings.LastIndex(source, "/"+folder+"/"); at >= 0 {
		return source[at+len(folder)+2:]
	}
	return ""
}

// Kind is the type in an object.
func Kind(object jsontext.Value) string {
	v, _, _ := rawjson.Lookup(object, "type") // an object without it has none
	s, _ := rawjson.Text(v)
	return s
}

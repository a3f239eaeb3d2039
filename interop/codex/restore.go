package codex

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop/internal/rebuild"
)

// Restore makes the file of a session again, for the first of the Folders. The file of a fork
// begins with the lines that it shares with its parent, unless its header has a history_base.
func (Format) Restore(ctx context.Context, log *eventlog.Log, id string) (r written.Restored, err error) {
	x := restorer{ctx: ctx, log: log, session: id, body: rebuild.Bodies(ctx, log)}
	lines, err := rebuild.Lines(ctx, log, id, x.record)
	if err != nil || len(lines) == 0 {
		return r, err
	}
	own := slices.IndexFunc(lines, func(l rebuild.Line) bool { return l.Session == id })
	if own < 0 {
		return r, nil
	}
	shared := lines[:own]
	header := lines[own]
	if !isHeaderOf(header.Record, id) { // it is erased, or the first file of the session had none
		header.Record, header.Erased = erasedHeader(id, &header), true
		own--
	}
	if base, _, _ := rawjson.Lookup(payloadIn(header.Record), "history_base"); base.Kind() == '{' {
		shared = nil
	}
	all := append([]rebuild.Line{header}, shared...)
	all = append(all, lines[own+1:]...)
	for i := range all {
		if all[i].Erased && all[i].Record == nil {
			all[i].Record = erasedItem(&all[i])
		}
	}
	at, _ := time.Parse(time.RFC3339, textIn(payloadIn(header.Record), "timestamp"))
	if at.IsZero() {
		at = header.Event.Timestamp
	}
	return rebuild.Restored(placeOf(rebuild.Below(lines[len(lines)-1].Source, "sessions"), id, at), id, all), nil
}

// placeOf is the place of the file of a session. below is the place that it had; empty if it
// is unknown.
func placeOf(below, id string, at time.Time) string {
	if below != "" && idInName(below) == id {
		return below
	}
	return fileName(id, at.UTC())
}

func payloadIn(record jsontext.Value) jsontext.Value {
	v, _, _ := rawjson.Lookup(record, "payload") // an older record has none
	return v
}

func textIn(object jsontext.Value, name string) string {
	v, _, _ := rawjson.Lookup(object, name)
	s, _ := rawjson.Text(v)
	return s
}

// isHeaderOf reports whether a record is the header of a session.
func isHeaderOf(record jsontext.Value, id string) bool {
	return textIn(payloadIn(record), "id") == id || textIn(record, "id") == id
}

// erasedHeader is a header in the place of an erased or missing one.
func erasedHeader(id string, l *rebuild.Line) jsontext.Value {
	return entryOf(l.Stamp(), metaKind, rawjson.Object([]rawjson.Member{
		rebuild.Text("id", id), rebuild.Text("timestamp", l.Stamp()), rebuild.Text("cwd", "/"),
		rebuild.Text("originator", "codex_cli_rs"), rebuild.Text("cli_version", writtenVersion), rebuild.Text("source", "cli"),
	}))
}

func entryOf(stamp, kind string, payload jsontext.Value) jsontext.Value {
	return rawjson.Object([]rawjson.Member{rebuild.Text("timestamp", stamp), rebuild.Text("type", kind), rebuild.Member("payload", payload)})
}

// erasedItem is an item with the call or the result of an erased message, without its content;
// nil for other events.
func erasedItem(l *rebuild.Line) jsontext.Value {
	m, ok := l.Outline()
	if !ok {
		return nil
	}
	item := func(members ...rawjson.Member) jsontext.Value {
		return entryOf(l.Stamp(), itemKind, rawjson.Object(members))
	}
	switch {
	case len(m.Calls) > 0:
		return item(rebuild.Text("type", "function_call"), rebuild.Text("name", "erased"), rebuild.Text("arguments", "{}"), rebuild.Text("call_id", m.Calls[0]))
	case len(m.Results) > 0:
		return item(rebuild.Text("type", "function_call_output"), rebuild.Text("call_id", m.Results[0]), rebuild.Text("output", rebuild.ErasedText))
	}
	text := rawjson.Object([]rawjson.Member{rebuild.Text("type", textType(m.Role)), rebuild.Text("text", rebuild.ErasedText)})
	return item(rebuild.Text("type", "message"), rebuild.Text("role", string(m.Role)), rebuild.Member("content", rawjson.Array([]jsontext.Value{text})))
}

// restorer makes the lines of Codex again.
type restorer struct {
	ctx     context.Context
	log     *eventlog.Log
	session string
	body    func(*event.Part) ([]byte, error)
}

// stamps are the forms of timestamps.
var stamps = []string{"2006-01-02T15:04:05.000Z", "2006-01-02T15:04:05.000000Z", time.RFC3339Nano, "2006-01-02T15:04:05.000000000Z"}

// envelope is the line around a payload. The member record of an extra are the members of the
// envelope that the import does not know.
func envelope(c *rebuild.Choices, e *event.Event, kind string, payload jsontext.Value, rest []rawjson.Member) jsontext.Value {
	if c.Is("older") {
		return payload
	}
	order := [][]string{{"timestamp", "ordinal", "type", "payload"}, {"type", "timestamp", "payload"}, {"timestamp", "type", "payload", "ordinal"}, {"type", "payload", "timestamp"}}
	members := []rawjson.Member{rebuild.Text("type", kind), rebuild.Member("payload", payload)}
	if _, ok := rawjson.Value(rest, "timestamp"); !ok && !c.Is("without timestamp") {
		members = append(members, rebuild.Text("timestamp", e.Timestamp.UTC().Format(stamps[c.Of("timestamp", len(stamps))])))
	}
	return rawjson.Object(rebuild.Join(c.Order("envelope", order), rest, members...))
}

// open separates an extra from the members of the envelope.
func open(extra jsontext.Value) (payload, around []rawjson.Member) {
	if len(extra) == 0 {
		return nil, nil
	}
	payload, _ = rawjson.Members(extra) // an extra is an object
	if n := len(payload); n > 0 && payload[n-1].Name == "record" && payload[n-1].Value.Kind() == '{' {
		around, _ = rawjson.Members(payload[n-1].Value)
		payload = payload[:n-1]
	}
	return slices.Clone(payload), around
}

// record makes the line of an event again; nil if the event has none.
func (x *restorer) record(c *rebuild.Choices, e *event.Event) (jsontext.Value, error) {
	p, err := e.Payload()
	if err != nil {
		return nil, err
	}
	switch p := p.(type) {
	case event.Message:
		members, around := open(p.Extra)
		name := "item of " + string(p.Role)
		if len(p.Parts) > 0 {
			name += " " + string(p.Parts[0].Type)
		}
		item, err := x.item(c, name, &p, members)
		return envelope(c, e, itemKind, item, around), err
	case event.Session:
		return whole(c, e, p.Extra, metaKind, "turn_context", eventKind), nil
	case event.Compaction:
		return x.compacted(c, e, &p)
	case event.TurnStart:
		return whole(c, e, p.Extra, eventKind), nil
	case event.TurnCompletion:
		return whole(c, e, p.Extra, eventKind), nil
	case event.StepCompletion:
		return whole(c, e, p.Extra, eventKind), nil
	case event.HeadMove:
		return whole(c, e, p.Extra, eventKind), nil
	case event.Child:
		return whole(c, e, p.Extra, eventKind), nil
	case event.External:
		return whole(c, e, p.Extra, eventKind), nil
	}
	return e.Data, nil
}

// whole is the line of an event whose extra is the payload.
func whole(c *rebuild.Choices, e *event.Event, extra jsontext.Value, kinds ...string) jsontext.Value {
	if len(extra) == 0 {
		return nil
	}
	members, around := open(extra)
	kind := kinds[0]
	if len(kinds) > 1 {
		_, isEvent := rawjson.Value(members, "type")
		_, isHeader := rawjson.Value(members, "id")
		switch {
		case isEvent:
			kind = eventKind
		case !isHeader:
			kind = "turn_context"
		}
	}
	return envelope(c, e, kind, rawjson.Object(members), around)
}

// compacted is the line of a compaction. The history that replaces the older one has messages
// of the log, and its own.
func (x *restorer) compacted(c *rebuild.Choices, e *event.Event, k *event.Compaction) (jsontext.Value, error) {
	members, around := open(k.Extra)
	var extras []rawjson.Member
	if v, ok := rawjson.Value(members, "entries"); ok {
		extras, _ = rawjson.Members(v)
		members = slices.DeleteFunc(members, func(m rawjson.Member) bool { return m.Name == "entries" })
	}
	message := rebuild.Text("message", k.Summary)
	if k.Summary == "" && !c.Is("without message") {
		message.Value = jsontext.Value(`""`)
	}
	if _, ok := rawjson.Value(members, "replacement_history"); ok || c.Is("without history") {
		return envelope(c, e, "compacted", rebuild.Object(compactedOrder, rawjson.NonEmpty(members), message), around), nil
	}
	var items []jsontext.Value
	for i, entry := range k.Entries {
		item, err := x.entry(c, &entry, extras, i)
		if errors.Is(err, event.ErrRedacted) {
			return nil, nil // the record repeats the erased message
		}
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	history := rebuild.Member("replacement_history", rawjson.Array(items))
	if sorted := c.Of("sorted history", 3); sorted > 0 {
		history.Value = rebuild.Sorted(history.Value, sorted == 2)
	}
	return envelope(c, e, "compacted", rebuild.Object(compactedOrder, rawjson.NonEmpty(members), message, history), around), nil
}

var compactedOrder = []string{"message", "replacement_history"}

// fileName is where Codex looks for the file of a session.
func fileName(id string, at time.Time) string {
	return at.Format("2006/01/02") + "/rollout-" + at.Format("2006-01-02T15-04-05") + "-" + id + ".jsonl"
}

package pi

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop/internal/rebuild"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/writing"
)

// Restore makes the file of a session again, for the first of the Folders. The file of a fork
// begins with the records that it shares with its parent.
func (Format) Restore(ctx context.Context, log *eventlog.Log, id string) (r written.Restored, err error) {
	x := restorer{body: rebuild.Bodies(ctx, log)}
	lines, err := rebuild.Lines(ctx, log, id, x.record)
	if err != nil || len(lines) == 0 {
		return r, err
	}
	header, err := headerLine(ctx, log, id)
	if err != nil {
		return r, err
	}
	// The log has the header, and no digest of it. The next record begins after it; in a fork,
	// that is a record of the parent.
	header.Same = header.Record != nil && (lines[0].Session != id || lines[0].Offset == int64(len(header.Record))+1)
	if header.Record == nil {
		header.Record = rawjson.Object([]rawjson.Member{
			rebuild.Text("type", "session"), rebuild.Member("version", jsontext.Value("3")), rebuild.Text("id", id),
			rebuild.Text("timestamp", header.Stamp()), rebuild.Text("cwd", "/"),
		})
	}
	rebuild.FillErased(lines, "id", "parentId", erasedRecord)
	return rebuild.Restored(placeOf(lines[len(lines)-1].Source, id, &header), id, append([]rebuild.Line{header}, lines...)), nil
}

// headerLine is the header of the file. Its record is nil if it is erased or missing.
func headerLine(ctx context.Context, log *eventlog.Log, id string) (l rebuild.Line, err error) {
	l.Session = id
	for e, err := range log.Read(ctx, id, eventlog.All().Own()) {
		if err != nil {
			return l, err
		}
		if l.Event.Seq == 0 {
			l.Event = event.Event{Seq: e.Seq, Timestamp: e.Timestamp}
		}
		switch e.Type.Name() {
		case event.SessionStarted, event.SessionUpdated:
			if e.Redacted() {
				l.Erased = true
				return l, nil
			}
			if s, ok, err := event.Decode[event.Session](&e); ok && err == nil && s.Source.Format == formatName {
				l.Record = s.Extra.Clone()
				return l, nil
			}
		}
	}
	return l, nil
}

// placeOf is the place of the file: the one that it had, or else the one for its working
// directory.
func placeOf(source, id string, header *rebuild.Line) string {
	if below := rebuild.Below(source, "sessions"); below != "" && idInName(below) == id {
		return below
	}
	at := records.Time(header.Text("timestamp"))
	if at.IsZero() {
		at = header.Event.Timestamp
	}
	return fileName(header.Text("cwd"), id, at)
}

// fileName is where pi looks for the file of a session.
func fileName(cwd, id string, at time.Time) string {
	folder := "--" + strings.Trim(strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(cwd), "-") + "--"
	return path.Join(folder, strings.NewReplacer(":", "-", ".", "-").Replace(writing.Stamp(at))+"_"+id+".jsonl")
}

// erasedRecord is a record that has the calls and the result of an erased message, without
// their content.
func erasedRecord(l *rebuild.Line, m rebuild.Outline, id string, parent jsontext.Value) jsontext.Value {
	blocks := []jsontext.Value{rawjson.Object([]rawjson.Member{rebuild.Text("type", "text"), rebuild.Text("text", rebuild.ErasedText)})}
	for _, call := range m.Calls {
		blocks = append(blocks, rawjson.Object([]rawjson.Member{
			rebuild.Text("type", "toolCall"), rebuild.Text("id", call), rebuild.Text("name", "erased"), rebuild.Member("arguments", jsontext.Value("{}")),
		}))
	}
	message := []rawjson.Member{rebuild.Text("role", string(m.Role)), rebuild.Member("content", rawjson.Array(blocks))}
	switch {
	case len(m.Results) > 0:
		message = append(message, rebuild.Text("toolCallId", m.Results[0]), rebuild.Text("toolName", "erased"), rebuild.Member("isError", jsontext.Value("false")))
		message[0] = rebuild.Text("role", "toolResult")
	case m.Role == event.Assistant:
		message = append(message, rebuild.Member("usage", jsontext.Value(`{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"total":0}}`)),
			rebuild.Text("stopReason", "stop"))
	}
	return rawjson.Object([]rawjson.Member{
		rebuild.Text("type", "message"), rebuild.Text("id", id), rebuild.Member("parentId", parent), rebuild.Text("timestamp", l.Stamp()),
		rebuild.Member("message", rawjson.Object(message)),
	})
}

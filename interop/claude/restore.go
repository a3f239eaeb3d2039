package claude

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop/internal/rebuild"
)

// Restore makes the file of a session again, for the first of the Folders. It returns no file
// for a sub-agent whose lines are in the file of its caller.
func (Format) Restore(ctx context.Context, log *eventlog.Log, id string) (r written.Restored, err error) {
	x := restorer{body: rebuild.Bodies(ctx, log)}
	lines, err := rebuild.Lines(ctx, log, id, x.record)
	if err != nil || len(lines) == 0 {
		return r, err
	}
	name := rebuild.Base(lines[len(lines)-1].Source)
	main, _, isSide := strings.Cut(id, ".")
	isFile := !isSide || strings.HasPrefix(name, "agent-") && strings.HasSuffix(name, ".jsonl")
	if !isFile {
		return r, nil
	}
	if !isSide {
		if lines, err = x.withSides(ctx, log, id, name, lines); err != nil {
			return r, err
		}
	}
	for i := range lines {
		if lines[i].Session != id && !strings.HasPrefix(lines[i].Session, id+".") {
			lines[i].Record = copied(lines[i].Record, id)
		}
	}
	rebuild.FillErased(lines, "uuid", "parentUuid", erasedLine)
	below := path.Join(folderOf(lines), main+".jsonl")
	switch source := strings.ReplaceAll(lines[len(lines)-1].Source, `\`, "/"); {
	case isSide && path.Base(path.Dir(source)) == "subagents":
		below = path.Join(folderOf(lines), main, "subagents", name)
	case isSide:
		below = path.Join(folderOf(lines), name)
	}
	return rebuild.Restored(below, id, lines), nil
}

// withSides adds the lines of sub-agents that are in the same file.
func (x *restorer) withSides(ctx context.Context, log *eventlog.Log, id, name string, lines []rebuild.Line) ([]rebuild.Line, error) {
	for info, err := range log.List(ctx, eventlog.Part{Prefix: id + "."}) {
		if err != nil {
			return nil, err
		}
		side, err := rebuild.Lines(ctx, log, info.ID, x.record)
		if err != nil {
			return nil, err
		}
		lines = append(lines, slices.DeleteFunc(side, func(l rebuild.Line) bool { return rebuild.Base(l.Source) != name })...)
	}
	rebuild.Sort(lines)
	return lines, nil
}

// folderOf is the name of the folder of the file: the name that it had, or else the name for
// the working directory.
func folderOf(lines []rebuild.Line) string {
	if below := rebuild.Below(lines[len(lines)-1].Source, "projects"); strings.Contains(below, "/") {
		name, _, _ := strings.Cut(below, "/")
		return name
	}
	for i := range lines {
		if cwd := lines[i].Text("cwd"); cwd != "" {
			return written.ClaudeFolder(cwd)
		}
	}
	return written.ClaudeFolder("/")
}

// copied is the copy of a line of another session, as Claude Code copies it into the file of a
// fork. Lines without a uuid have no copy.
func copied(record jsontext.Value, id string) jsontext.Value {
	members, err := rawjson.Members(record)
	if err != nil {
		return nil
	}
	if _, ok := rawjson.Value(members, "uuid"); !ok {
		return nil
	}
	return rawjson.Object(rawjson.Set(members, "sessionId", rebuild.Quote(id)))
}

// erasedLine is a line that has the calls and the results of an erased message, without their
// content.
func erasedLine(l *rebuild.Line, m rebuild.Outline, uuid string, parent jsontext.Value) jsontext.Value {
	kind := "user"
	message := []rawjson.Member{rebuild.Text("role", "user")}
	if m.Role == "assistant" {
		kind = "assistant"
		message = []rawjson.Member{rebuild.Text("id", cmp.Or(m.ResponseID, "msg_erased_"+uuid)), rebuild.Text("type", "message"), rebuild.Text("role", "assistant")}
	}
	var blocks []jsontext.Value
	block := func(members ...rawjson.Member) { blocks = append(blocks, rawjson.Object(members)) }
	for _, id := range m.Results {
		block(rebuild.Text("type", "tool_result"), rebuild.Text("tool_use_id", id), rebuild.Text("content", rebuild.ErasedText))
	}
	if len(m.Results) == 0 {
		block(rebuild.Text("type", "text"), rebuild.Text("text", rebuild.ErasedText))
	}
	for _, id := range m.Calls {
		block(rebuild.Text("type", "tool_use"), rebuild.Text("id", id), rebuild.Text("name", "erased"), rebuild.Member("input", jsontext.Value("{}")))
	}
	message = append(message, rebuild.Member("content", rawjson.Array(blocks)))
	main, _, isSide := strings.Cut(l.Session, ".")
	side := jsontext.Value("false")
	if isSide {
		side = jsontext.Value("true")
	}
	_, agent, _ := strings.Cut(l.Session, ".agent-")
	members := []rawjson.Member{
		rebuild.Member("parentUuid", parent), rebuild.Member("isSidechain", side), rebuild.Text("agentId", agent),
		rebuild.Text("sessionId", main), rebuild.Text("type", kind), rebuild.Member("message", rawjson.Object(message)),
		rebuild.Text("uuid", uuid), rebuild.Text("timestamp", l.Stamp()),
	}
	return rawjson.Object(slices.DeleteFunc(members, func(m rawjson.Member) bool { return m.Value == nil }))
}

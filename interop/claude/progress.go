package claude

import (
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
)

// progressOf is the data of a progress record, if that is of a sub-agent. The record has a
// line of the sub-agent.
type progressOf struct {
	Type    text           `json:"type"`
	AgentID text           `json:"agentId"`
	Line    jsontext.Value `json:"message"`
}

// progress reads the data of a record; ok is false if it has no line of a sub-agent.
func (f *facts) progress() (p progressOf, ok bool) {
	if f.Type != "progress" || len(f.Data) == 0 || json.Unmarshal(f.Data, &p) != nil {
		return p, false
	}
	return p, p.Type == "agent_progress" && p.AgentID != ""
}

// lineFromProgress adds the line in a progress record to the session of the sub-agent, if no
// file has this session: some versions wrote none, and programs that collect transcripts
// leave it out. The record counts once, for the session of the caller.
func (im *importer) lineFromProgress(rec *records.Record, f *facts) error {
	p, ok := f.progress()
	if !ok || im.hasFile(f.SessionID, string(p.AgentID)) {
		return nil
	}
	line := records.Record{Source: rec.Source, Line: rec.Line, Offset: rec.Offset, Value: p.line(f), Repaired: rec.Repaired}
	of, err := factsOf(line.Value)
	if err != nil || !of.isMessage() || of.UUID == "" {
		return nil
	}
	s, err := im.open(of.session(), &of)
	if err != nil || s.FindOwn(of.UUID, ownPart).Seq > 0 || s.New() && !of.beginsSession() {
		return err
	}
	counted, at := im.result.Result, im.at
	if own := of.time(); !own.IsZero() {
		im.at = own // the session of the caller has the line later
	}
	err = im.applyTo(s, line, &of, of.beginsSession())
	im.at = at
	sessions := im.result.Sessions
	im.result.Result = counted
	im.result.Sessions = sessions
	return err
}

// line is the line of a sub-agent in a progress record, as a file of the sub-agent has it.
func (p *progressOf) line(f *facts) jsontext.Value {
	members, err := rawjson.Members(p.Line)
	if err != nil {
		return nil
	}
	quote := func(s string) jsontext.Value {
		v, _ := jsontext.AppendQuote(nil, s) // the text was decoded
		return v
	}
	for _, m := range []rawjson.Member{
		{Name: "isSidechain", Value: jsontext.Value("true")},
		{Name: "agentId", Value: quote(string(p.AgentID))},
		{Name: "sessionId", Value: quote(f.SessionID)},
		{Name: "cwd", Value: quote(f.CWD)},
		{Name: "version", Value: quote(f.Version)},
	} {
		members = rawjson.Set(members, m.Name, m.Value)
	}
	return rawjson.Object(members)
}

// hasFile reports whether a sub-agent has a file of its own beside the file of its session.
func (im *importer) hasFile(session, agent string) bool {
	key := session + "/" + agent
	has, known := im.agentFiles[key]
	if !known {
		dir, name := filepath.Dir(im.src.Name), "agent-"+filepath.Base(agent)+".jsonl"
		for _, path := range []string{filepath.Join(dir, filepath.Base(session), "subagents", name), filepath.Join(dir, name)} {
			info, err := os.Stat(path)
			has = has || err == nil && info.Mode().IsRegular()
		}
		im.agentFiles[key] = has
	}
	return has
}

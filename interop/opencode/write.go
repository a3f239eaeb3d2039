package opencode

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/interop/internal/writing"
)

// writtenVersion is the version of OpenCode whose documents Write writes.
const writtenVersion = "1.18.33"

// begunID begins the ids of the messages and parts that Write writes. They come before all ids
// that OpenCode makes, because OpenCode makes them of the time.
const begunID = "00000000"

// NewID makes the id of a new session.
func (Format) NewID() string { return "ses_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// isBegun reports whether Write made the id of a part or a message, in the name of an item.
func isBegun(name string) bool {
	_, id, _ := strings.Cut(name, "_")
	return strings.HasPrefix(id, begunID)
}

type writtenDocument struct {
	Info     writtenSession   `json:"info"`
	Messages []writtenMessage `json:"messages"`
}

type writtenSession struct {
	ID        string       `json:"id"`
	Slug      string       `json:"slug"`
	ProjectID string       `json:"projectID"`
	Directory string       `json:"directory"`
	Title     string       `json:"title"`
	Version   string       `json:"version"`
	Time      writtenClock `json:"time"`
}

type writtenClock struct {
	Created   int64 `json:"created,omitzero"`
	Updated   int64 `json:"updated,omitzero"`
	Completed int64 `json:"completed,omitzero"`
	Start     int64 `json:"start,omitzero"`
	End       int64 `json:"end,omitzero"`
}

type writtenMessage struct {
	Info  any   `json:"info"`
	Parts []any `json:"parts"`
}

type writtenModel struct {
	ProviderID string `json:"providerID"`
	ModelID    string `json:"modelID"`
}

type writtenRequest struct {
	ID        string       `json:"id"`
	SessionID string       `json:"sessionID"`
	Role      string       `json:"role"`
	Time      writtenClock `json:"time"`
	Agent     string       `json:"agent"`
	Model     writtenModel `json:"model"`
}

type writtenAnswer struct {
	ID           string         `json:"id"`
	SessionID    string         `json:"sessionID"`
	Role         string         `json:"role"`
	ParentID     string         `json:"parentID"`
	Mode         string         `json:"mode"`
	Agent        string         `json:"agent"`
	Path         writtenPath    `json:"path"`
	Cost         float64        `json:"cost"`
	Tokens       jsontext.Value `json:"tokens"`
	writtenModel `json:",inline"`
	Time         writtenClock `json:"time"`
	Finish       string       `json:"finish"`
}

type writtenPath struct {
	CWD  string `json:"cwd"`
	Root string `json:"root"`
}

// noTokens are the tokens of a written answer: they count where the answer was given.
var noTokens = jsontext.Value(`{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}}`)

// writtenID are the ids of a part, and its type.
type writtenID struct {
	ID        string `json:"id"`
	SessionID string `json:"sessionID"`
	MessageID string `json:"messageID"`
	Type      string `json:"type"`
}

type writtenText struct {
	writtenID `json:",inline"`
	Text      string `json:"text"`
}

type writtenFile struct {
	writtenID `json:",inline"`
	MIME      string `json:"mime"`
	URL       string `json:"url"`
}

type writtenTool struct {
	writtenID `json:",inline"`
	CallID    string       `json:"callID"`
	Tool      string       `json:"tool"`
	State     writtenState `json:"state"`
}

type writtenState struct {
	Status      string         `json:"status"`
	Input       jsontext.Value `json:"input"`
	Output      *string        `json:"output,omitzero"`
	Error       string         `json:"error,omitzero"`
	Title       *string        `json:"title,omitzero"`
	Metadata    jsontext.Value `json:"metadata"`
	Time        writtenClock   `json:"time"`
	Attachments []writtenFile  `json:"attachments,omitzero"`
}

// Write writes the messages as the document of a session, which "opencode import" reads.
// Reasoning is left out.
func (Format) Write(c interop.Conversation) (interop.Written, error) {
	said, losses := writing.Messages(c, writing.Rules{Program: formatName, ErrorMarks: true})
	w := interop.Written{
		Path: path.Join("resume", c.ID+".json"), Losses: losses,
		Import: []string{"opencode", "import"}, Command: []string{"opencode", "--session", c.ID},
	}
	d := drafting{c: c, calls: map[string]*writtenTool{}}
	d.model.ProviderID, d.model.ModelID = writing.LastModel(c.History)
	d.model.ProviderID, d.model.ModelID = cmp.Or(d.model.ProviderID, "anthropic"), cmp.Or(d.model.ModelID, "unknown")
	for i := range said {
		if err := d.add(&said[i]); err != nil {
			return w, err
		}
	}
	at := c.At.UnixMilli()
	var err error
	w.Body, err = json.Marshal(writtenDocument{
		writtenSession{c.ID, "resumed", "global", c.CWD, cmp.Or(c.Title, "Resumed session"), writtenVersion, writtenClock{Created: at, Updated: at}}, d.messages,
	})
	return w, err
}

// drafting makes the messages of a document.
type drafting struct {
	c        interop.Conversation
	model    writtenModel
	messages []writtenMessage
	request  string // id of the newest message of the user
	n        int    // of the ids
	at       int64  // time of the newest message, in milliseconds
	calls    map[string]*writtenTool
}

// next is the next id with a prefix. The ids ascend, and no other session has them.
func (d *drafting) next(prefix string) string {
	d.n++
	return fmt.Sprintf("%s_%s%s%08d", prefix, begunID, strings.TrimPrefix(d.c.ID, "ses_"), d.n)
}

// add adds a message. A result goes to its call.
func (d *drafting) add(s *writing.Said) error {
	d.at = max(s.At.UnixMilli(), d.at+1) // OpenCode sorts by the time; a summary is newer than the messages after it
	at := d.at
	var rest []event.Part
	for i := range s.Parts {
		p := &s.Parts[i]
		call := d.calls[p.CallID]
		if p.Type != event.ToolResultPart || call == nil {
			rest = append(rest, *p)
			continue
		}
		if err := d.answer(call, p, at); err != nil {
			return err
		}
	}
	if len(rest) == 0 {
		return nil
	}
	m, id := writtenMessage{Parts: []any{}}, d.next("msg")
	if s.Role == event.Assistant {
		if d.request == "" { // an answer follows a request
			d.request = d.next("msg")
		}
		m.Info = writtenAnswer{
			ID: id, SessionID: d.c.ID, Role: "assistant", ParentID: d.request, Mode: "build", Agent: "build", Path: writtenPath{d.c.CWD, "/"}, Tokens: noTokens,
			writtenModel: writtenModel{cmp.Or(s.Provider, d.model.ProviderID), cmp.Or(s.Model, d.model.ModelID)}, Time: writtenClock{Created: at, Completed: at}, Finish: "stop",
		}
	} else {
		d.request = id
		m.Info = writtenRequest{id, d.c.ID, "user", writtenClock{Created: at}, "build", d.model}
	}
	for i := range rest {
		part, err := d.part(&rest[i], id, at)
		if err != nil {
			return err
		}
		if part != nil {
			m.Parts = append(m.Parts, part)
		}
	}
	d.messages = append(d.messages, m)
	return nil
}

// part renders a part; nil for a part without content.
func (d *drafting) part(p *event.Part, message string, at int64) (any, error) {
	id := func(kind string) writtenID { return writtenID{d.next("prt"), d.c.ID, message, kind} }
	switch p.Type {
	case event.ToolCallPart:
		empty := ""
		call := &writtenTool{id("tool"), p.CallID, p.Name, writtenState{
			Status: "completed", Input: render.Arguments(p.Arguments), Output: &empty, Title: &empty, Metadata: jsontext.Value("{}"), Time: writtenClock{Start: at, End: at},
		}}
		d.calls[p.CallID] = call
		return call, nil
	case event.ImagePart:
		f, ok, err := d.file(p, id("file"))
		if ok || err != nil {
			return f, err
		}
	}
	if text := render.Words(p); text != "" {
		return writtenText{id("text"), text}, nil
	}
	return nil, nil
}

// file renders an image; ok is false for one without a body.
func (d *drafting) file(p *event.Part, id writtenID) (f writtenFile, ok bool, err error) {
	m, ok, err := render.Load(p, d.c.Blob)
	if err != nil || !ok || len(m.Data) == 0 {
		return f, false, err
	}
	return writtenFile{id, m.Type, "data:" + m.Type + ";base64," + m.Base64()}, true, nil
}

// answer adds a result to its call.
func (d *drafting) answer(call *writtenTool, p *event.Part, at int64) error {
	var texts []string
	for i := range p.Content {
		part := &p.Content[i]
		if part.Type == event.ImagePart && !p.IsError {
			f, ok, err := d.file(part, writtenID{d.next("prt"), d.c.ID, call.MessageID, "file"})
			if err != nil {
				return err
			}
			if ok {
				call.State.Attachments = append(call.State.Attachments, f)
				continue
			}
		}
		if text := render.Words(part); text != "" {
			texts = append(texts, text)
		}
	}
	text := strings.Join(texts, "\n")
	call.State.Time.End = max(at, call.State.Time.Start)
	if p.IsError {
		call.State.Status, call.State.Error, call.State.Output, call.State.Title = "error", cmp.Or(text, "error"), nil, nil
		return nil
	}
	call.State.Output = &text
	return nil
}

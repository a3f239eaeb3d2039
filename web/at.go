package web

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/step"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// replayPage shows a session as of an event: the history that the model saw, the states, what
// the event changed, and the files. atPage is the same with the event in the path.
var (
	replayPage = page{pattern: "/s/{session}/at", template: "at.html", tab: "Replay", load: (*Handler).at}
	atPage     = page{pattern: "/s/{session}/at/{seq}", template: "at.html", load: (*Handler).at}
)

// atView is the page of a session as of an event.
type atView struct {
	*sessionHead
	Seq        int64
	Type       event.Type
	Path       string // of the slider
	Event      string // the page of the event
	Prev, Next string
	Changes    []atValue // by the event
	Values     []atValue // the others that are not empty

	History  []*htmlpage.Entry
	Messages int    // of the history
	Earlier  string // address of the messages before those

	Files     []fileRow
	FilesLeft int
	File      string // the name of the file whose text is shown
	FileText  *htmlpage.Text
	FileNote  string

	States []htmlpage.Link
	State  string // the name of the state that is shown
	JSON   *htmlpage.Text
	Cut    bool // the JSON is cut
}

// atValue is a value before and after an event.
type atValue struct{ Name, From, To string }

// The bounds of the page.
const (
	atMessages = 100
	atFiles    = 100
	atState    = 1000      // messages of the history whose JSON is shown
	atText     = 128 << 10 // bytes of a file or a state
)

// atPath is the address of a session as of an event.
func atPath(session string, seq int64) string { return sessionPath(session, "at", itoa(seq)) }

func (h *Handler) at(r *http.Request) (view, error) {
	s, err := h.head(r)
	if err != nil {
		return view{}, err
	}
	seq, err := seqOf(r, "seq", s.Head)
	if text := r.PathValue("seq"); text != "" {
		seq, err = parseSeq("seq", text)
	}
	if err != nil {
		return view{}, err
	}
	row, loaded, err := step.At(r.Context(), h.log, s.ID, seq)
	if err != nil {
		return view{}, err
	}
	v := atView{sessionHead: s, Seq: seq, Type: row.Type, Path: sessionPath(s.ID, "at"), Event: eventLink(s.ID, seq)}
	if seq > 1 {
		v.Prev = atPath(s.ID, seq-1)
	}
	if seq < s.Head {
		v.Next = atPath(s.ID, seq+1)
	}
	v.values(&row)
	if err := h.historyAt(r, &v, loaded); err != nil {
		return view{}, err
	}
	if err := h.filesAt(r.Context(), &v, r.URL.Query().Get("file")); err != nil {
		return view{}, err
	}
	if err := h.stateAt(r.Context(), &v, loaded, r.URL.Query().Get("state")); err != nil {
		return view{}, err
	}
	return view{title: "#" + itoa(seq) + " · " + s.Title, body: v}, nil
}

// values lists what the event changed, and the other values.
func (v *atView) values(row *step.Row) {
	show := func(x any) string { return transcript.Visible(htmlpage.Brief(step.Text(x), 120)) }
	if p := row.Patch; p != nil {
		x := atValue{"state " + transcript.Visible(htmlpage.Brief(p.Name, 60)), "", transcript.Visible(htmlpage.Brief(string(p.Patch), 400))}
		if !p.Applied {
			x.From = "does not apply"
		}
		v.Changes = append(v.Changes, x)
	}
	if row.Child != nil {
		v.Changes = append(v.Changes, atValue{"child run " + transcript.Visible(htmlpage.Brief(row.ChildID, 60)), show(row.Child.From), show(row.Child.To)})
	}
	for i := range row.Values {
		x := &row.Values[i]
		value := atValue{x.Name, show(x.From), show(x.To)}
		switch {
		case x.Changed():
			v.Changes = append(v.Changes, value)
		case value.To != "-" && value.To != "0" && value.To != "$0":
			v.Values = append(v.Values, value)
		}
	}
}

// historyAt reads the newest messages of the history, or those before the one with a number.
func (h *Handler) historyAt(r *http.Request, v *atView, loaded *projection.Loaded) error {
	before, err := seqOf(r, "before", 1<<62)
	if err != nil {
		return err
	}
	history, _ := projection.State(loaded, projection.History())
	v.Messages = history.Len()
	end := int(min(before-1, int64(v.Messages)))
	first := max(0, end-atMessages)
	last, err := history.Window(r.Context(), h.log, v.ID, first, end)
	if err != nil {
		return err
	}
	if first > 0 {
		v.Earlier = atPath(v.ID, v.Seq) + "?before=" + itoa(int64(first)+1) + "#history"
	}
	j := newJoiner(newView(v.ID, v.row.CWD), 2*atMessages, &v.History)
	for i := range last {
		if err := j.Add(transcript.OfHistory(&last[i])); err != nil {
			return err
		}
	}
	return j.Flush()
}

// filesAt lists the files as of the event, and shows the text of one.
func (h *Handler) filesAt(ctx context.Context, v *atView, file string) error {
	var list files.List
	for c, err := range h.changesTo(ctx, v.ID, v.Seq) {
		if err != nil {
			return err
		}
		list.Add(&c)
	}
	slices.Reverse(list.Files)
	for _, f := range list.Files {
		name := transcript.Visible(files.Below(v.row.CWD, f.Path))
		if f.Path == file {
			v.File = name
			v.text(f)
		}
		if len(v.Files) == atFiles {
			v.FilesLeft++
			continue
		}
		v.Files = append(v.Files, fileRow{File: f, Name: name, Link: atPath(v.ID, v.Seq) + "?file=" + url.QueryEscape(f.Path) + "#files"})
	}
	return nil
}

// text shows the text of a file.
func (v *atView) text(f *files.File) {
	if !f.State.Known || f.State.Absent {
		v.FileNote = "The log does not have the text at this event: it is " + f.Text + "."
		return
	}
	text, cut := begin(f.State.Text)
	shown := (&htmlpage.View{}).Text(text, "")
	v.FileText = &shown
	if cut {
		v.FileNote = "Only the beginning is shown."
	}
}

// begin is the beginning of a text for a page.
func begin(text string) (shown string, cut bool) {
	if len(text) <= atText {
		return text, false
	}
	return text[:atText], true
}

// stateAt shows the state of one projection, as JSON. The page does not have the JSON of a long
// history.
func (h *Handler) stateAt(ctx context.Context, v *atView, loaded *projection.Loaded, name string) error {
	for _, part := range projection.Session().Parts {
		known := part.ProjectionName()
		v.States = append(v.States, htmlpage.Link{Name: known, Href: atPath(v.ID, v.Seq) + "?state=" + known + "#state", On: known == name})
		if known != name {
			continue
		}
		if v.State = name; name == projection.History().Name {
			if v.Cut = v.Messages > atState; v.Cut {
				continue
			}
			var err error
			if loaded, err = projection.LoadSet(ctx, h.log, v.ID, projection.Of("", projection.History()), projection.Options{At: v.Seq}); err != nil {
				return err
			}
		}
		state, err := projection.StateJSON(loaded, name)
		if err == nil {
			state, err = rawjson.Indent(state)
		}
		if err != nil {
			return err
		}
		text, cut := begin(string(state))
		shown := (&htmlpage.View{}).Text(text, "json")
		v.JSON, v.Cut = &shown, cut
	}
	if name != "" && v.State == "" {
		return badRequest{"there is no state " + strconv.Quote(name), "choose one on the page"}
	}
	return nil
}

package web

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop/formats"
)

// sessionPage shows a session: the outline of its turns beside the conversation.
var sessionPage = page{pattern: "/s/{session}", template: "conversation.html", tab: "Conversation", load: (*Handler).conversation}

// The bounds of a part of a conversation, in events.
const (
	partEvents = 150
	// aheadEvents is how far results may be from their calls.
	aheadEvents = 50
)

// sessionHead is the top of each page of a session.
type sessionHead struct {
	ID, Title string
	Facts     []htmlpage.Link // a fact may have no address
	Command   string          // that goes on with the session
	Tabs      []htmlpage.Link
	Head      int64 // seq of the newest event

	row *listing.Row
}

func (h *Handler) headOf(ctx context.Context, session string, stale bool) (*sessionHead, error) {
	row, err := h.rows.one(ctx, session, stale)
	if err != nil {
		return nil, err
	}
	return h.newHead(ctx, row), nil
}

func (h *Handler) newHead(ctx context.Context, row *listing.Row) *sessionHead {
	return &sessionHead{ID: row.ID, Title: htmlpage.SessionName(row), Head: row.Head.Seq, row: row, Command: "logtool resume " + h.shortID(ctx, row.ID)}
}

// head loads the top of a page of a session.
func (h *Handler) head(r *http.Request) (*sessionHead, error) {
	s, err := h.headOf(r.Context(), r.PathValue("session"), false)
	if err != nil {
		return nil, err
	}
	s.facts(h)
	s.addTabs(h, r)
	return s, nil
}

// addTabs adds the links to the pages of the session.
func (s *sessionHead) addTabs(h *Handler, r *http.Request) {
	for _, p := range h.all {
		if p.tab != "" {
			s.Tabs = append(s.Tabs, htmlpage.Link{Name: p.tab, On: r.Pattern == "GET "+p.pattern || r.Pattern == "GET "+p.pattern+"/{seq}",
				Href: strings.Replace(strings.TrimSuffix(p.pattern, "{$}"), "/s/{session}", sessionPath(s.ID), 1)})
		}
	}
}

// shortID is the beginning of an id that only this session has, or the id.
func (h *Handler) shortID(ctx context.Context, id string) string {
	for _, n := range []int{8, 13, 18} {
		if len(id) <= n {
			break
		}
		if found, err := h.log.Resolve(ctx, id[:n]); err == nil && found == id {
			return id[:n]
		}
	}
	return id
}

// facts lists what is known about the session.
func (s *sessionHead) facts(h *Handler) {
	add := func(text string) {
		if text != "" {
			s.Facts = append(s.Facts, htmlpage.Link{Name: transcript.Visible(text)})
		}
	}
	if badge := h.badge(s); badge.Name != "" {
		s.Facts = append(s.Facts, badge)
	}
	row := s.row
	if !row.IsRead() {
		add(transcript.Count(row.Events, "event"))
		return
	}
	add(row.Source)
	add(htmlpage.Brief(strings.Join(row.Models, ", "), 80))
	add(row.CWD)
	if first, last := row.First().In(h.opts.Zone), row.Last().In(h.opts.Zone); !row.First().IsZero() {
		end := "15:04"
		if first.Format(time.DateOnly) != last.Format(time.DateOnly) {
			end = "2 Jan 2006, 15:04"
		}
		add(first.Format("2 Jan 2006, 15:04") + " – " + last.Format(end))
	}
	add(transcript.Count(row.Turns, "turn"))
	add(transcript.Count(row.Calls, "call"))
	if u := row.Usage; !u.IsZero() {
		add(htmlpage.Compact(u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens) + " in, " + htmlpage.Compact(u.OutputTokens) + " out")
	}
	add(htmlpage.Spend(row.Spend()))
	if row.Parent != "" {
		s.Facts = append(s.Facts, htmlpage.Link{Name: row.Kind() + " of " + transcript.Visible(htmlpage.Brief(row.Parent, 40)) + " at " + transcript.At(row.At), Href: sessionPath(row.Parent)})
	}
}

// conversationView is the page of a conversation.
type conversationView struct {
	*sessionHead
	Turns          []outlineTurn
	Before, After  int // turns before and after those
	All            int
	Part           part
	Toggles        []toggle
	Earlier, Later string // addresses of the parts beside this one; empty at the ends
	Newest         string
	Live           bool   // the part ends with the session: it can grow
	Reading        string // an address that answers when the outline has been read; empty if it has
	Path           string // of the session
}

// toggle is a box that shows or hides a kind of entries.
type toggle struct{ ID, Name string }

var toggles = []toggle{{"show-prompts", "prompts"}, {"show-answers", "answers"}, {"show-reasoning", "reasoning"}, {"show-tools", "tools"}, {"show-failures", "failures"}, {"show-context", "context"}}

// part is a part of a conversation.
type part struct {
	Entries  []*htmlpage.Entry
	From, To int64
}

func (h *Handler) conversation(r *http.Request) (view, error) {
	s, o, err := h.soon(r.Context(), r.PathValue("session"))
	if err != nil {
		return view{}, err
	}
	s.facts(h)
	s.addTabs(h, r)
	from, err := seqOf(r, "from", 1)
	if err != nil {
		return view{}, err
	}
	from = max(1, min(from, s.Head))
	v := conversationView{sessionHead: s, Toggles: toggles, Path: sessionPath(s.ID)}
	if o == nil {
		o, v.Reading = &outline{}, sessionPath(s.ID, "entries")
	}
	if v.Part, err = h.part(r.Context(), s, o, from); err != nil {
		return view{}, err
	}
	v.Turns, v.Before, v.After = o.around(s, from)
	v.All = v.Before + len(v.Turns) + v.After
	v.Live = v.Part.To == s.Head
	path := sessionPath(s.ID)
	if from > 1 {
		v.Earlier = path + "?from=" + itoa(max(1, from-partEvents))
	}
	if !v.Live {
		v.Later = path + "?from=" + itoa(v.Part.To+1)
		v.Newest = path + "?from=" + itoa(max(1, s.Head-partEvents+1)) + "#end"
	}
	return view{title: s.Title, body: v}, nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// seqOf reads a seq from the query of a request.
func seqOf(r *http.Request, name string, missing int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return missing, nil
	}
	return parseSeq(name, text)
}

func parseSeq(name, text string) (int64, error) {
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 1 {
		return 0, badRequest{name + " is the seq of an event, not " + strconv.Quote(text), ""}
	}
	return seq, nil
}

// part reads the entries from a seq on.
func (h *Handler) part(ctx context.Context, s *sessionHead, o *outline, from int64) (part, error) {
	p := part{From: from, To: min(from+partEvents-1, s.Head)}
	all, err := transcript.ReadPart(ctx, h.log, s.ID, p.From, p.To, aheadEvents)
	if err != nil {
		return p, err
	}
	v, err := h.viewOf(ctx, s, eventlog.Between(p.From, p.To+aheadEvents))
	if err != nil {
		return p, err
	}
	v.Turn = func(x *transcript.Entry) *htmlpage.Turn { return o.head(s, x) }
	for _, x := range all {
		e := v.Entry(x)
		if e == nil {
			continue
		}
		if n := len(p.Entries); n > 0 {
			e.Again(p.Entries[n-1])
		}
		p.Entries = append(p.Entries, e)
	}
	return p, nil
}

// newView makes the view of events of a session with a folder.
func newView(session, folder string) *htmlpage.View {
	return &htmlpage.View{Folder: folder, EventLink: func(seq int64) string { return eventLink(session, seq) },
		BodyLink: func(ref event.BlobRef) string { return sessionPath(session, "body", string(ref.Blob)) }}
}

// newJoiner returns a joiner of n events. It adds the views of its entries to a list, without
// headings of turns.
func newJoiner(v *htmlpage.View, n int, list *[]*htmlpage.Entry) *transcript.Joiner {
	j := transcript.NewJoiner(func(x *transcript.Entry) error {
		if e := v.Entry(x); e != nil {
			e.Turn = nil
			*list = append(*list, e)
		}
		return nil
	})
	j.Window, j.Fold = n, true
	return j
}

// viewOf makes the view of the events of a range, with their changes of files and sub-agents.
func (h *Handler) viewOf(ctx context.Context, s *sessionHead, events eventlog.Range) (*htmlpage.View, error) {
	v := newView(s.ID, s.row.CWD)
	v.Changes, v.Children = map[string][]files.Change{}, map[string][]htmlpage.Child{}
	tools := formats.FileTools(s.row.Source)
	for c, err := range files.Of(ctx, h.log, s.ID, events, func(string) files.Tools { return tools }) {
		if err != nil {
			return nil, err
		}
		v.Changes[c.CallID] = append(v.Changes[c.CallID], c)
	}
	return v, h.children(ctx, v, s.ID, events)
}

// children finds the sub-agents of calls, with the costs of their sessions.
func (h *Handler) children(ctx context.Context, v *htmlpage.View, session string, events eventlog.Range) error {
	return v.AddChildren(h.log.Read(ctx, session, events), func(c *event.Child) htmlpage.Child { return h.child(ctx, c) })
}

func (h *Handler) child(ctx context.Context, c *event.Child) htmlpage.Child {
	x := htmlpage.NewChild(c)
	if c.ChildSessionID == "" {
		return x
	}
	row, err := h.rows.one(ctx, c.ChildSessionID, true)
	if err != nil {
		x.State += ", its session is missing"
		return x
	}
	x.Link = sessionPath(row.ID)
	x.Facts = []string{transcript.Count(row.Calls, "call")}
	if took := row.Last().Sub(row.First()); took > 0 {
		x.Facts = append(x.Facts, htmlpage.Duration(took))
	}
	if spend := htmlpage.Spend(row.Spend()); spend != "" {
		x.Facts = append(x.Facts, spend)
	}
	if c.Agent+c.Task == "" {
		x.Title = htmlpage.SessionName(row)
	}
	return x
}

// entriesPattern is the address of a part of a conversation without the page around it, for the
// script.
const entriesPattern = "/s/{session}/entries"

func (h *Handler) entries(w http.ResponseWriter, r *http.Request) {
	leave, ok := h.enter(r.Context(), h.busy)
	if !ok {
		return
	}
	h.work(w, leave, func(w http.ResponseWriter) { h.writeEntries(w, r) })
}

func (h *Handler) writeEntries(w http.ResponseWriter, r *http.Request) {
	var b bytes.Buffer
	err := func() error {
		s, o, err := h.whole(r.Context(), r.PathValue("session"), true)
		if err != nil {
			return err
		}
		from, err := seqOf(r, "from", 1)
		if err != nil || from > s.Head {
			return err
		}
		p, err := h.part(r.Context(), s, o, from)
		if err != nil {
			return err
		}
		return h.pages["conversation.html"].ExecuteTemplate(&b, "entries", p)
	}()
	if err != nil {
		problemOf(err).Write(w)
		return
	}
	write(w, "text/html; charset=utf-8", http.StatusOK, b.Bytes())
}

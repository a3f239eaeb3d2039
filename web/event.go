package web

import (
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/transcript"
)

// eventPage shows one event: all of its text, and its JSON.
var eventPage = page{pattern: "/s/{session}/e/{seq}", template: "event.html", load: (*Handler).event}

// eventView is the page of an event.
type eventView struct {
	*sessionHead
	Seq        int64
	Type       event.Type
	Entry      *htmlpage.Entry
	JSON       htmlpage.Text
	Back       string // the conversation at the event
	At         string // the session as of the event
	Prev, Next string
}

// eventLink is the address of the page of an event.
func eventLink(session string, seq int64) string { return sessionPath(session, "e", itoa(seq)) }

func (h *Handler) event(r *http.Request) (view, error) {
	s, err := h.head(r)
	if err != nil {
		return view{}, err
	}
	seq, err := parseSeq("seq", r.PathValue("seq"))
	if err != nil {
		return view{}, err
	}
	e, err := h.log.Event(r.Context(), s.ID, seq)
	if err != nil {
		return view{}, err
	}
	all, err := transcript.ReadPart(r.Context(), h.log, s.ID, seq, seq, aheadEvents)
	if err != nil {
		return view{}, err
	}
	v := eventView{sessionHead: s, Seq: seq, Type: e.Type, At: atPath(s.ID, seq), Back: sessionPath(s.ID) + "?from=" + itoa(max(1, seq-5)) + "#e" + itoa(seq)}
	render, err := h.viewOf(r.Context(), s, eventlog.Between(seq, seq+aheadEvents))
	if err != nil {
		return view{}, err
	}
	render.Whole = true
	for _, x := range all {
		v.Entry = render.Entry(x)
	}
	if v.Entry != nil {
		v.Entry.Turn = nil
	}
	if v.JSON, err = eventJSON(render, &e); err != nil {
		return view{}, err
	}
	if seq > 1 {
		v.Prev = eventLink(s.ID, seq-1)
	}
	if seq < s.Head {
		v.Next = eventLink(s.ID, seq+1)
	}
	return view{title: "#" + itoa(seq) + " · " + s.Title, body: v}, nil
}

func eventJSON(v *htmlpage.View, e *event.Event) (htmlpage.Text, error) {
	text, err := json.Marshal(httpapi.NewEvent(e), jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return htmlpage.Text{}, err
	}
	return v.Text(string(text), "json"), nil
}

// bodyPattern is the address of a body.
const bodyPattern = "/s/{session}/body/{digest}"

// The bounds of a body that is sent.
const (
	sniffed  = 512
	bodyTime = 5 * time.Minute
)

// body sends a body: a raster image to be shown, and any other body as a file.
func (h *Handler) body(w http.ResponseWriter, r *http.Request) {
	leave, ok := h.enter(r.Context(), h.streams)
	if !ok {
		return
	}
	defer leave()
	digest := event.Digest(r.PathValue("digest"))
	if err := digest.Check(); err != nil {
		problemOf(badRequest{err.Error(), ""}).Write(w)
		return
	}
	body, err := h.log.OpenBlob(r.Context(), digest)
	if err != nil {
		problemOf(err).Write(w)
		return
	}
	defer body.Close()
	begin := make([]byte, sniffed)
	n, err := io.ReadFull(body, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		problemOf(err).Write(w)
		return
	}
	begin = begin[:n]
	kind := htmlpage.RasterType(begin)
	if kind == "" {
		kind = "application/octet-stream"
		w.Header().Set("Content-Disposition", "attachment")
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime)) // a recorder in a test has none
	w.Header().Set("Content-Type", kind)
	if _, err := w.Write(begin); err == nil {
		_, _ = io.Copy(w, body) // the client has gone
	}
}

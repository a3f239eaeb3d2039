package web

import (
	"net/http"
	"strconv"

	"github.com/convlog/convlog/internal/httpapi"
)

// streamPattern is the address of the stream of a session: one frame for each event, with its
// seq as the id. The script then asks for the entries that changed.
const streamPattern = "/s/{session}/stream"

func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	session := r.PathValue("session")
	from, err := seqOf(r, "from", 1)
	if last, parse := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); parse == nil && last > 0 {
		from = last + 1 // the client has read up to there
	}
	head, missing := h.log.Head(r.Context(), session)
	switch {
	case err != nil:
		problemOf(err).Write(w)
		return
	case missing != nil:
		problemOf(missing).Write(w)
		return
	case from > head.Seq+1:
		problemOf(badRequest{"the stream begins after the newest event", "begin it at the newest event"}).Write(w)
		return
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		httpapi.NewProblem(http.StatusServiceUnavailable, "too many pages follow sessions", "close some of them").Write(w)
		return
	}
	s, ctx := httpapi.NewStream(w, r)
	defer s.End()
	for e, err := range h.log.Watch(ctx, session, from) {
		if err != nil {
			return // the client connects again, and gets the error then
		}
		seq := strconv.FormatInt(e.Seq, 10)
		if !s.Send(httpapi.Frame{ID: seq, Event: "event", Data: []byte(`{"seq":` + seq + `,"type":` + strconv.Quote(string(e.Type)) + `}`)}) {
			return
		}
	}
}

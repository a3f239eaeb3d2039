package web

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/httpapi"
)

// streamPattern is the address of the stream of a session: one frame for each event, with its
// seq as the id. The script then asks for the entries that changed.
const streamPattern = "/s/{session}/stream"

// seen is a frame of the stream for the script.
type seen struct {
	Seq  int64      `json:"seq"`
	Type event.Type `json:"type"`
}

func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	from, err := seqOf(r, "from", 1)
	if err == nil {
		err = h.follow(w, r, from, func(e *event.Event) httpapi.Frame {
			return httpapi.Frame{Event: "event", Data: encoded(seen{e.Seq, e.Type})}
		})
	}
	if err != nil {
		problemOf(err).Write(w)
	}
}

// encoded is a value in a frame.
func encoded(v any) []byte {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return []byte(`{}`) // the values come from valid events
	}
	return text
}

// enterStream takes a place among the open streams.
func (h *Handler) enterStream() (leave func(), err error) {
	select {
	case h.streams <- struct{}{}:
		return func() { <-h.streams }, nil
	default:
		return nil, httpapi.NewProblem(http.StatusServiceUnavailable, "too many clients follow sessions", "close some of the streams")
	}
}

// follow sends a frame for each event of a session from a seq on, or after the one of
// Last-Event-ID. An error after the first frame is a frame problem, which ends the stream.
func (h *Handler) follow(w http.ResponseWriter, r *http.Request, from int64, frame func(*event.Event) httpapi.Frame) error {
	session := r.PathValue("session")
	if last, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64); err == nil && last > 0 {
		from = last + 1 // the client has read up to there
	}
	head, err := h.log.Head(r.Context(), session)
	switch {
	case err != nil:
		return err
	case from > head.Seq+1:
		return badRequest{"the stream begins after the newest event", "begin it at the newest event"}
	}
	leave, err := h.enterStream()
	if err != nil {
		return err
	}
	defer leave()
	s, ctx := httpapi.NewStream(w, r)
	defer s.End()
	for e, err := range h.log.Watch(ctx, session, from) {
		if err != nil {
			if ctx.Err() == nil {
				s.Send(httpapi.Frame{Event: "problem", Data: encoded(problemOf(err))})
			}
			return nil
		}
		f := frame(&e)
		if f.ID = strconv.FormatInt(e.Seq, 10); !s.Send(f) {
			return nil
		}
	}
	return nil
}

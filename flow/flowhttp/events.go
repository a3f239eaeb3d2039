package flowhttp

import (
	"math"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/httpapi"
)

// The names of frames. A frame of an event has no name.
const (
	frameDelta   = "delta"
	frameProblem = "problem"
)

// delta is a piece of a message that is not finished.
type delta struct {
	Message ulid.ULID      `json:"message"`
	Part    int            `json:"part"`
	Kind    event.PartType `json:"kind"`
	Attempt int            `json:"attempt"`
	// Offset is the length of the part before text, in bytes of UTF-8.
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	from, err := begin(r)
	if err != nil {
		return err
	}
	head, err := h.log.Head(r.Context(), session)
	if err != nil {
		return err
	}
	if from > head.Seq+1 {
		return httpapi.NewProblem(http.StatusConflict, "the session has "+strconv.FormatInt(head.Seq, 10)+" events, and the client has seen more: the session is another one", "reload the page")
	}
	stream, ctx := httpapi.NewStream(w, r)
	defer stream.End()
	for s, err := range follow(ctx, h.log, session, from) {
		frame, err := frameOf(s, err)
		if ctx.Err() != nil || !stream.Send(frame) || err != nil {
			return nil
		}
	}
	return nil
}

// begin is the first event that a client wants: the one after Last-Event-ID, or after the
// parameter after.
func begin(r *http.Request) (int64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 1, nil
	}
	seq, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seq < 0 || seq == math.MaxInt64 {
		return 0, httpapi.NewProblem(http.StatusBadRequest, "the last event id is "+strconv.Quote(text), "give the id of a frame of this stream, a number")
	}
	return seq + 1, nil
}

// frameOf is the frame of a step, or of the error that ends the stream.
func frameOf(s step, err error) (f httpapi.Frame, _ error) {
	var v any
	switch {
	case err != nil:
		f.Event, v = frameProblem, problemOf(err)
	case s.delta != nil:
		d := s.delta
		f.Event, v = frameDelta, delta{Message: d.Message, Part: d.Part, Kind: d.Kind, Attempt: d.Attempt, Offset: d.Offset, Text: d.Text}
	default:
		f.ID, v = strconv.FormatInt(s.event.Seq, 10), httpapi.NewEvent(s.event)
	}
	text, failed := json.Marshal(v, json.Deterministic(true))
	if failed != nil {
		f.ID, f.Event = "", frameProblem
		text, _ = json.Marshal(problemOf(failed)) // strings only
		return httpapi.Frame{Event: frameProblem, Data: text}, failed
	}
	f.Data = text
	return f, err
}

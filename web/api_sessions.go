package web

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/listing"
)

// sessionPart is a part of a list of sessions.
type sessionPart struct {
	Sessions []answers.Session `json:"sessions"`
	Next     string            `json:"next,omitzero"`
}

func (h *Handler) apiSessions(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	query, f, err := parseFilters(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	limit, err := limitOf(r)
	if err != nil {
		return err
	}
	place, err := cursorOf(r)
	if err != nil {
		return err
	}
	h.rows.list.Lock()
	defer h.rows.list.Unlock()
	defer flush(ctx, h.rows.catalog)
	reader := h.rows.reader()
	_, rows, err := h.rows.choose(ctx, reader, &query, f.All)
	if err != nil {
		return err
	}
	if place != "" {
		var ok bool
		if rows, ok = listing.After(rows, query.Sort, place); !ok {
			return errCursor
		}
	}
	part := sessionPart{Sessions: []answers.Session{}}
	more := len(rows) > limit
	rows = rows[:min(limit, len(rows))]
	if err := reader.Summaries(ctx, rows); err != nil {
		return err
	}
	for _, row := range rows {
		part.Sessions = append(part.Sessions, answers.NewSession(row))
	}
	if more {
		part.Next = newCursor(r, listing.Place(rows[len(rows)-1]))
	}
	return reply(w, http.StatusOK, part)
}

func (h *Handler) apiSession(w http.ResponseWriter, r *http.Request) error {
	ctx, session := r.Context(), r.PathValue("session")
	head, err := h.log.Head(ctx, session)
	if err != nil {
		return err
	}
	if isKnown(w, r, head) {
		return nil
	}
	row, err := listing.ReadOne(ctx, h.log, session)
	if err != nil {
		return err
	}
	if err := h.rows.reader().Summaries(ctx, []*listing.Row{row}); err != nil {
		return err
	}
	w.Header().Set("ETag", tag(row.Head))
	return reply(w, http.StatusOK, answers.NewSession(row))
}

// eventPart is a part of the events of a session.
type eventPart struct {
	Events []jsontext.Value `json:"events"`
	// Seq and Hash are the head of the session.
	Seq  int64      `json:"seq"`
	Hash event.Hash `json:"hash"`
	// Next is the value of after for the next part; 0 in the last one.
	Next int64 `json:"next,omitzero"`
}

func (h *Handler) apiEvents(w http.ResponseWriter, r *http.Request) error {
	ctx, session := r.Context(), r.PathValue("session")
	after, err := afterOf(r)
	if err != nil {
		return err
	}
	part, err := newPart(r)
	if err != nil {
		return err
	}
	marker := &answers.PathMarker{Log: h.log, Session: session}
	switch path := r.URL.Query().Get("path"); path {
	case "", "all":
	case "active":
		marker = nil
	default:
		return badRequest{"path is all or active, not " + strconv.Quote(path), "leave it out for all events"}
	}
	head, known, err := h.apiHead(w, r)
	if err != nil || known {
		return err
	}
	out := eventPart{Seq: head.Seq, Hash: head.Hash}
	events := eventlog.Between(after+1, head.Seq)
	if marker == nil {
		events = events.OnPath()
	}
	last := int64(0)
	if after < head.Seq {
		for e, err := range h.log.Read(ctx, session, events) {
			if err == nil && part.isFull() || len(part.rows) > 0 && errors.Is(err, eventlog.ErrCorrupt) {
				out.Next = last // after damage, the next request gets the error
				break
			}
			x := httpapi.NewEvent(&e)
			if err == nil {
				if x.Orphaned, err = marker.Orphaned(ctx, &e); errors.Is(err, eventlog.ErrCorrupt) {
					marker, err = nil, nil // the path is unknown, and the event is readable
				}
			}
			if err == nil {
				err = part.add(x)
			}
			if err != nil {
				return err
			}
			last = e.Seq
		}
	}
	out.Events = part.rows
	return reply(w, http.StatusOK, out)
}

// afterOf reads the parameter after: the seq of the last event that the client has.
func afterOf(r *http.Request) (int64, error) {
	text := r.URL.Query().Get("after")
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, badRequest{"after is the seq of an event, or 0, not " + strconv.Quote(text), ""}
	}
	return after, nil
}

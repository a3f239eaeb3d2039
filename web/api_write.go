package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/httpapi"
)

// mostBody is the length of the longest body of a request.
const mostBody = 16 << 20

// newEvents is the body of an append.
type newEvents struct {
	Events []answers.NewEvent `json:"events"`
}

func (h *Handler) apiAppend(w http.ResponseWriter, r *http.Request) error {
	ctx, session := r.Context(), r.PathValue("session")
	var body newEvents
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	if len(body.Events) == 0 {
		return httpapi.NewProblem(http.StatusUnprocessableEntity, "the request has no events to append", "send at least one in events")
	}
	expect, err := h.expectOf(r)
	if err != nil {
		return err
	}
	events := make([]event.Event, len(body.Events))
	for i := range body.Events {
		events[i] = body.Events[i].Event()
	}
	head, err := h.log.Append(ctx, session, expect, events...)
	if err != nil {
		return unprocessable(err)
	}
	w.Header().Set("ETag", tag(head))
	return reply(w, http.StatusOK, answers.NewHead(session, head, len(events)))
}

// expectOf is the expectation of the headers If-Match and If-None-Match.
func (h *Handler) expectOf(r *http.Request) (eventlog.Expect, error) {
	head, err := h.matchOf(r)
	switch none := r.Header.Get("If-None-Match"); {
	case err != nil:
		return eventlog.Expect{}, err
	case none != "" && (none != "*" || !head.IsZero()):
		return eventlog.Expect{}, badRequest{"an append has the header If-None-Match: *, for a new session, or If-Match", "send one of them, or none to append at any head"}
	case none != "":
		return eventlog.New(), nil
	case !head.IsZero():
		return eventlog.At(head), nil
	}
	return eventlog.Any(), nil
}

// matchOf is the head of the header If-Match, an ETag or the seq of an event; zero without one.
func (h *Handler) matchOf(r *http.Request) (head event.Head, err error) {
	text := r.Header.Get("If-Match")
	if text == "" {
		return head, nil
	}
	bad := badRequest{"If-Match is an ETag of the session, or the seq of its newest event, not " + strconv.Quote(text), `send "12", or the ETag of an answer as it is`}
	seq, hash, whole := strings.Cut(strings.Trim(text, `"`), ":")
	if head.Seq, err = strconv.ParseInt(seq, 10, 64); err != nil || head.Seq < 1 {
		return head, bad
	}
	if whole {
		if head.Hash.UnmarshalText([]byte(hash)) != nil {
			return head, bad
		}
		return head, nil
	}
	session := r.PathValue("session")
	e, err := h.log.Event(r.Context(), session, head.Seq)
	if errors.Is(err, eventlog.ErrEventNotFound) {
		actual, err := h.log.Head(r.Context(), session)
		if err != nil {
			return head, err
		}
		return head, &eventlog.ConflictError{Session: session, Expected: head, Actual: actual}
	}
	head.Hash = e.Hash()
	return head, err
}

// place is an event of a session in the body of a fork or a rewind: its seq, the end or the begin of a turn,
// or a snapshot.
type place struct {
	Turn     *int   `json:"turn"`
	Before   bool   `json:"before"`
	Snapshot string `json:"snapshot"`
	Label    string `json:"label"`
	Reason   string `json:"reason"`
	Force    bool   `json:"force"`
}

// point is the place; ok is false without one.
func (x *place) point(seq *int64) (p fork.Point, ok bool, err error) {
	given := 0
	if seq != nil {
		given++
		p = fork.AtSeq(*seq)
	}
	if x.Turn != nil {
		given++
		p = fork.AtTurn(*x.Turn)
		if x.Before {
			p = fork.BeforeTurn(*x.Turn)
		}
	}
	if x.Snapshot != "" {
		given++
		p = fork.AtSnapshot(x.Snapshot)
	}
	if given > 1 || x.Before && x.Turn == nil || x.Turn != nil && *x.Turn < 0 || seq != nil && *seq < 0 {
		return p, false, badRequest{"the body names no place, or more than one", "send one of a seq, turn (with before for its begin), and snapshot"}
	}
	return p, given == 1, nil
}

func (h *Handler) apiFork(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		place `json:",inline"`
		At    *int64 `json:"at"`
		As    string `json:"as"`
	}
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	point, ok, err := body.point(body.At)
	if err != nil {
		return err
	}
	if !ok {
		point = fork.Head()
	}
	opts := fork.Options{ID: body.As, Label: body.Label, Reason: body.Reason, Force: body.Force}
	child, err := fork.At(r.Context(), h.log, r.PathValue("session"), point, opts)
	if err != nil {
		return unprocessable(err)
	}
	w.Header().Set("ETag", tag(child.Head))
	return reply(w, http.StatusOK, answers.NewFork(child, opts))
}

func (h *Handler) apiRewind(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		place `json:",inline"`
		To    *int64 `json:"to"`
	}
	if err := readBody(w, r, &body); err != nil {
		return err
	}
	point, ok, err := body.point(body.To)
	if err == nil && !ok {
		err = badRequest{"the body names no place to go back to", "send one of to, turn and snapshot"}
	}
	if err != nil {
		return err
	}
	opts := fork.Options{Label: body.Label, Reason: body.Reason, Force: body.Force}
	if opts.Head, err = h.matchOf(r); err != nil {
		return err
	}
	m, err := fork.Rewind(r.Context(), h.log, r.PathValue("session"), point, opts)
	if err != nil {
		return unprocessable(err)
	}
	w.Header().Set("ETag", tag(m.Head))
	return reply(w, http.StatusOK, answers.NewMove(m))
}

// readBody decodes the body of a request.
func readBody(w http.ResponseWriter, r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return httpapi.NewProblem(http.StatusUnsupportedMediaType, "the body is not declared as JSON", "send the header Content-Type: application/json")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return httpapi.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", long.Limit), "send fewer events in each request")
	}
	if err != nil {
		return badRequest{"the body ends too early", "send it again"}
	}
	if err := json.Unmarshal(text, v, json.RejectUnknownMembers(true)); err != nil {
		return badRequest{"the body cannot be read: " + answers.InJSON(err).Error(), "GET " + apiPath + "/openapi has its schema"}
	}
	return nil
}

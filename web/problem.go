package web

import (
	"cmp"
	"errors"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/search"
)

// badRequest is an error of a request.
type badRequest struct{ detail, remedy string }

func (e badRequest) Error() string { return e.detail }

// problems are the problems of errors, in the order in which they are looked for.
var problems = []struct {
	err    error
	status int
	remedy string
}{
	{fork.Error("past_head"), http.StatusUnprocessableEntity, "name an event of the session"},
	{fork.Error("no_turn"), http.StatusUnprocessableEntity, "name a turn of the session, counted from 0"},
	{fork.Error("no_snapshot"), http.StatusUnprocessableEntity, "logtool state list names the snapshots"},
	{eventlog.ErrNotFound, http.StatusNotFound, "the list of sessions has the ids of all sessions"},
	{eventlog.ErrEventNotFound, http.StatusNotFound, "the newest event of the session has the greatest seq"},
	{eventlog.ErrBlobNotFound, http.StatusNotFound, "logtool verify says whether a session misses it"},
	{search.ErrInvalidQuery, http.StatusBadRequest, "correct the words to search for"},
	{eventlog.ErrExists, http.StatusConflict, "name another id"},
	{fork.Error("open_turn"), http.StatusConflict, "name an event between two turns, or send force"},
	{fork.Error("inside_append"), http.StatusConflict, "name the last event of that append, or the one before it"},
	{fork.Error("no_move"), http.StatusConflict, "nothing was changed"},
	{fork.Error("unrelated"), http.StatusConflict, "the trees of the sessions show what they have in common"},
	{event.ErrInvalid, http.StatusBadRequest, "correct the request"},
	{eventlog.ErrCorrupt, http.StatusInternalServerError, "logtool verify lists all damage, and logtool store repair mends it"},
	{event.ErrVersion, http.StatusInternalServerError, "serve the store with a newer logtool"},
	{eventlog.ErrUnknownOutcome, http.StatusServiceUnavailable, "send the same events again, with the same ids"},
	{eventlog.ErrLocked, http.StatusServiceUnavailable, "send the request again later"},
	{eventlog.ErrUnavailable, http.StatusServiceUnavailable, "send the request again later"},
	{eventlog.ErrClosed, http.StatusServiceUnavailable, "the server ends: send the request again later"},
	{eventlog.ErrMoved, http.StatusServiceUnavailable, "start the server again"},
	{syscall.EMFILE, http.StatusServiceUnavailable, "raise the limit of open files (ulimit -n), and start the server again"},
	{eventlog.ErrReadOnly, http.StatusForbidden, "start the server with --write, as a user who may change the store"},
	{fs.ErrPermission, http.StatusForbidden, "start the server as a user who may change the store"},
}

// problemOf is the problem document of an error.
func problemOf(err error) *httpapi.Problem {
	var p *httpapi.Problem
	var bad badRequest
	var conflict *eventlog.ConflictError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &bad):
		return httpapi.NewProblem(http.StatusBadRequest, bad.detail, cmp.Or(bad.remedy, "correct this part of the request"))
	case errors.As(err, &conflict) && conflict.ID != "":
		return httpapi.NewProblem(http.StatusConflict, err.Error(), "give the event another id")
	case errors.As(err, &conflict):
		p = httpapi.NewProblem(http.StatusPreconditionFailed, err.Error(), "read the new events, decide, and send If-Match with the head in seq and hash")
		p.Seq, p.Hash = conflict.Actual.Seq, conflict.Actual.Hash.String()
		return p
	}
	for _, x := range problems {
		if errors.Is(err, x.err) {
			return httpapi.NewProblem(x.status, err.Error(), x.remedy)
		}
	}
	return httpapi.NewProblem(http.StatusInternalServerError, err.Error(), "logtool verify checks the store")
}

// unprocessable is the problem of an event that breaks a rule; another error stays as it is.
func unprocessable(err error) error {
	var rule event.Rule
	if !errors.Is(err, event.ErrInvalid) {
		return err
	}
	p := httpapi.NewProblem(http.StatusUnprocessableEntity, err.Error(), "correct the event: docs/FORMAT.md has the rules of each type; nothing was appended")
	if errors.As(err, &rule) {
		p.Rule = rule
	}
	return p
}

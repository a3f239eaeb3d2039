package flowhttp

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/projection"
)

// Options configure New. The zero value is ready for use.
type Options struct {
	// Authorize decides whether a request may read or change a session, and returns who sends
	// it: the name is recorded with answers and aborts. The session is empty for the list of
	// approvals, whose sessions are asked for one by one. An error refuses the request; its
	// text is the answer. The default accepts requests from this machine, to a name of this
	// machine, and not from pages of another origin.
	Authorize func(r *http.Request, session string) (by string, err error)
	// MaxInput is the length of the longest body that a client may send, in bytes; 0 is 1 MiB.
	MaxInput int64
}

//go:embed openapi.json
var openAPI []byte

// handler serves an agent.
type handler struct {
	http.ServeMux
	agent
	options Options
}

// agent is what the handler needs of a flow.Agent, whatever its state is.
type agent struct {
	name string
	log  *eventlog.Log
	// send stores an input and runs it, whoever follows it. It returns when the input has
	// begun its turn.
	send func(ctx context.Context, session string, in flow.Input) (flow.Ref, string, error)
	// resume runs an open turn that an answer allows to go on.
	resume func(ctx context.Context, session string) error
	// snapshot returns a snapshot, without its state's type.
	snapshot func(ctx context.Context, ref flow.Ref) (snapshot, error)
}

// New returns a handler of the agent's sessions. Mount it with http.StripPrefix. The turns
// that it begins go on when their clients vanish, until the log is closed.
func New[S any](a *flow.Agent[S], o Options) http.Handler {
	h := &handler{options: o, agent: agent{name: a.Name, log: a.Log}}
	h.options.MaxInput = cmp.Or(o.MaxInput, 1<<20)
	if h.options.Authorize == nil {
		h.options.Authorize = local
	}
	h.send = func(ctx context.Context, session string, in flow.Input) (flow.Ref, string, error) {
		handle, err := a.Send(context.WithoutCancel(ctx), session, in)
		if err != nil {
			return flow.Ref{}, "", err
		}
		return handle.Detach(), handle.Input, nil
	}
	h.resume = func(ctx context.Context, session string) error {
		handle, err := a.Resume(context.WithoutCancel(ctx), flow.Ref{Session: session})
		var pause *flow.Hibernated
		switch {
		case err == nil:
			handle.Detach()
		case errors.As(err, &pause), errors.Is(err, flow.ErrAlreadyRunning):
			return nil // it waits for more answers, or another process goes on
		}
		return err
	}
	h.snapshot = func(ctx context.Context, ref flow.Ref) (snapshot, error) {
		s, err := a.Snapshot(ctx, ref)
		if err != nil {
			return snapshot{}, err
		}
		return newSnapshot(&s)
	}
	h.routes()
	return h
}

// routes are the paths of the handler. A test compares them with openapi.json.
func (h *handler) routes() {
	for path, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"POST /sessions/{session}/inputs":        h.postInput,
		"GET /sessions/{session}/events":         h.events,
		"GET /sessions/{session}":                h.session,
		"POST /sessions/{session}/answers":       h.postAnswer,
		"POST /sessions/{session}/abort":         h.postAbort,
		"GET /sessions/{session}/snapshots":      h.snapshots,
		"GET /sessions/{session}/snapshots/{id}": h.oneSnapshot,
		"GET /approvals":                         h.approvals,
		"POST /ai-sdk":                           h.aiSDK,
		"GET /ai-sdk/{session}/stream":           h.aiSDKStream,
		"GET /ai-sdk/{session}/messages":         h.aiSDKMessages,
		"POST /ag-ui":                            h.agUI,
		"GET /openapi.json":                      serveOpenAPI,
	} {
		h.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			if err := f(w, r); err != nil {
				problemOf(err).Write(w)
			}
		})
	}
}

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI) // the client has gone
	return nil
}

// local is the default of Options.Authorize.
func local(r *http.Request, _ string) (string, error) {
	if p := httpapi.CheckLocal(r); p != nil {
		return "", p
	}
	return "http", nil
}

// authorize asks Options.Authorize.
func (h *handler) authorize(r *http.Request, session string) (by string, err error) {
	by, err = h.options.Authorize(r, session)
	var p *httpapi.Problem
	if err == nil || errors.As(err, &p) {
		return by, err
	}
	return "", httpapi.NewProblem(http.StatusForbidden, err.Error(), "ask whoever runs the server")
}

// read decodes the body of a request. Names that v does not have are refused if strict.
func (h *handler) read(w http.ResponseWriter, r *http.Request, v any, o ...json.Options) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return httpapi.NewProblem(http.StatusUnsupportedMediaType, "the body is not declared as JSON", "send the header Content-Type: application/json")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.MaxInput))
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return httpapi.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", long.Limit), "send a shorter input")
	}
	if err != nil {
		return httpapi.NewProblem(http.StatusBadRequest, "the body ends too early", "send it again")
	}
	if err := json.Unmarshal(text, v, o...); err != nil {
		return httpapi.NewProblem(http.StatusBadRequest, "the body cannot be read: "+err.Error(), "see openapi.json")
	}
	return nil
}

// problemOf is the problem document of an error of the agent or of the log.
func problemOf(err error) *httpapi.Problem {
	var p *httpapi.Problem
	var input *flow.InputError
	var home *flow.HomeError
	if errors.As(err, &p) {
		return p
	}
	status, remedy := http.StatusInternalServerError, "see the log of the server"
	switch {
	case errors.Is(err, eventlog.ErrNotFound):
		status, remedy = http.StatusNotFound, "send an input to begin the session"
	case errors.Is(err, projection.ErrSnapshotNotFound):
		status, remedy = http.StatusNotFound, "list the snapshots of the session"
	case errors.Is(err, flow.ErrAnswered), errors.Is(err, flow.ErrExpired), errors.Is(err, flow.ErrNotOpen):
		status, remedy = http.StatusConflict, "read the session again: it has the open reviews"
	case errors.Is(err, flow.ErrMismatch):
		status, remedy = http.StatusConflict, "show the review as it is now, and ask again"
	case errors.As(err, &home):
		status, remedy = http.StatusConflict, "run the server over the session's own store, or take the turn over with logtool agent take"
	case errors.As(err, &input):
		status, remedy = http.StatusConflict, "send the messages under a new id"
	case errors.Is(err, event.ErrInvalid), errors.Is(err, flow.ErrStart):
		status, remedy = http.StatusUnprocessableEntity, "correct the request"
	case errors.Is(err, eventlog.ErrUnavailable), errors.Is(err, eventlog.ErrClosed), errors.Is(err, eventlog.ErrLocked):
		status, remedy = http.StatusServiceUnavailable, "try again later"
	case errors.Is(err, eventlog.ErrUnknownOutcome):
		status, remedy = http.StatusServiceUnavailable, "send the same request again, with the same id"
	case errors.Is(err, eventlog.ErrConflict), errors.Is(err, flow.ErrAlreadyRunning):
		status, remedy = http.StatusConflict, "send the same request again"
	}
	return httpapi.NewProblem(status, err.Error(), remedy)
}

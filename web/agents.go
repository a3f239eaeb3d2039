package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// agentsPage lists the sessions that agents run or wait in. On a server for writing it has forms to
// answer what they wait for.
var agentsPage = page{pattern: agentsPath, template: "agents.html", nav: "Agents", load: (*Handler).agents}

// agentsPath is the address of the page, and of its forms below it.
const agentsPath = "/runs"

// agentsView is the page of agents.
type agentsView struct {
	Rows  []agentRow // newest activity first; those that wait for a person come first
	Left  int        // rows that the page leaves out
	All   string     // the address of a page with the sessions whose turns have ended; empty on it
	Write bool
}

// agentRow is a session that an agent runs, or ran.
type agentRow struct {
	Session, Name, Link string
	Status              flow.Status
	Agent, Runner       string
	Since               time.Time
	Reviews             []agentReview
	Waits               []agentWait
	Others              []string // what it waits for besides
	Open                bool     // a turn is open: it can be aborted
	Problem             string
	Do                  string // the address of the forms
}

// agentReview is an open review.
type agentReview struct {
	ID, Name, Prompt  string
	Digest            event.Digest
	Arguments, Detail *htmlpage.Text
	Until             time.Time
	Link              string // of the event that asks
}

// agentWait is an open wait.
type agentWait struct {
	ID, Name string
	Until    time.Time
}

// mostAgents is the most sessions that the page lists.
const mostAgents = 200

func (h *Handler) agents(r *http.Request) (view, error) {
	ctx, all := r.Context(), r.URL.Query().Has("all")
	v := agentsView{Write: h.opts.Write}
	if !all {
		v.All = agentsPath + "?all="
	}
	defer flush(ctx, h.rows.catalog)
	for x, err := range answers.Runs(ctx, h.log, h.rows.catalog) {
		if err != nil && x.Session == "" {
			return view{}, err
		}
		if err != nil || all || x.Turn != nil || len(x.Inbox) > 0 {
			v.Rows = append(v.Rows, h.agentRow(ctx, &x, err))
		}
	}
	if err := context.Cause(ctx); err != nil {
		return view{}, err
	}
	slices.SortStableFunc(v.Rows, func(a, b agentRow) int {
		return cmp.Or(cmp.Compare(len(b.Reviews)+len(b.Waits), len(a.Reviews)+len(a.Waits)), b.Since.Compare(a.Since))
	})
	v.Left = max(0, len(v.Rows)-mostAgents)
	v.Rows = v.Rows[:len(v.Rows)-v.Left]
	return view{title: "Agents", body: v}, h.name(ctx, v.Rows)
}

// name gives the rows the names of their sessions. A session that cannot be read keeps its id.
func (h *Handler) name(ctx context.Context, rows []agentRow) error {
	named := map[string]*agentRow{}
	var all []*listing.Row
	for i := range rows {
		if row, _, err := h.rows.begin(ctx, rows[i].Session, true); err == nil {
			named[row.ID], all = &rows[i], append(all, row)
		}
	}
	err := h.rows.reader().Names(ctx, all)
	for _, row := range all {
		named[row.ID].Name = htmlpage.SessionName(row)
	}
	return err
}

func (h *Handler) agentRow(ctx context.Context, x *flow.RunInfo, err error) agentRow {
	row := agentRow{Session: x.Session, Name: transcript.Visible(x.Session), Link: sessionPath(x.Session), Status: x.Status, Agent: transcript.Visible(x.Agent),
		Runner: transcript.Visible(x.Runner), Since: x.Since, Open: x.Turn != nil, Do: agentsPath + strings.TrimPrefix(sessionPath(x.Session), "/s")}
	for _, a := range x.Approvals {
		row.Reviews = append(row.Reviews, newAgentReview(x.Session, &a))
	}
	for _, w := range x.Waits {
		row.Waits = append(row.Waits, agentWait{w.WaitID, transcript.Visible(htmlpage.Brief(w.Reason, 200)), w.Until})
	}
	run := answers.NewRun(ctx, h.log, x, err)
	for _, o := range run.Open {
		if o.Kind != answers.OpenReview && (o.Kind != answers.OpenWait || o.ChildSession != "") {
			row.Others = append(row.Others, transcript.Visible(htmlpage.Brief(transcript.Join(o.Kind, o.Name, o.ID, o.ChildSession), 200)))
		}
	}
	if len(run.Open) == 0 && x.Runner == "" && x.Turn != nil {
		row.Others = append(row.Others, "the agent to start")
	}
	row.Problem = transcript.Visible(run.Error)
	return row
}

func newAgentReview(session string, a *projection.OpenApproval) agentReview {
	at := cmp.Or(a.SessionID, session)
	x := agentReview{ID: a.InterruptID, Name: transcript.Visible(htmlpage.Brief(a.Name, 100)), Prompt: transcript.Visible(a.Prompt), Digest: a.ArgumentsDigest, Until: a.ExpiresAt,
		Link: eventLink(at, a.Seq)}
	show := func(v jsontext.Value) *htmlpage.Text {
		if len(v) == 0 {
			return nil
		}
		shown := (&htmlpage.View{EventLink: func(int64) string { return x.Link }}).Text(string(v), "json")
		return &shown
	}
	x.Arguments, x.Detail = show(a.Arguments), show(a.Detail)
	return x
}

// agentsForms is the address of the forms of the page.
const agentsForms = agentsPath + "/{session}/{action}"

// mostForm is the length of the longest form.
const mostForm = 1 << 20

// act does what a form of the page says, and leads back to the page.
func (h *Handler) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	err := r.ParseForm()
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		err = httpapi.NewProblem(http.StatusRequestEntityTooLarge, "the form is longer than 1 MiB", "shorten it")
	case err != nil:
		err = badRequest{err.Error(), "send the form of the page"}
	default:
		err = h.actOn(r, r.PathValue("session"), r.PathValue("action"))
	}
	if err != nil {
		h.problem(w, r, agentProblem(err))
		return
	}
	http.Redirect(w, r, agentsPath, http.StatusSeeOther)
}

func (h *Handler) actOn(r *http.Request, session, action string) error {
	ctx, form, by := r.Context(), r.PostForm, h.opts.By
	switch action {
	case "decide":
		a := flow.Answer{Decision: event.Decision(form.Get("decision")), By: by, Reason: form.Get("reason")}
		if a.Decision == event.Answered {
			a.Value = jsonOrText(form.Get("value"))
		}
		var err error
		if a.Review, err = h.openReview(ctx, session, form.Get("review"), event.Digest(form.Get("digest"))); err != nil {
			return err
		}
		_, err = flow.Decide(ctx, h.log, session, a)
		return err
	case "resolve":
		_, err := flow.Resolve(ctx, h.log, session, form.Get("wait"), jsonOrText(form.Get("value")), by)
		return err
	case "abort":
		_, err := flow.Abort(ctx, h.log, session, event.Abort{By: by, Reason: form.Get("reason")})
		return err
	case "post":
		if strings.TrimSpace(form.Get("text")) == "" {
			return badRequest{"the input has no text", "write what the agent shall do"}
		}
		info, err := flow.Info(ctx, h.log, session)
		if err != nil {
			return err
		}
		in := flow.Text(form.Get("text"))
		in.ID, in.PostOnly = event.NewID().String(), true
		_, err = (&flow.Agent[jsontext.Value]{Name: cmp.Or(info.Agent, "logtool"), Log: h.log}).Send(ctx, session, in)
		return err
	}
	return httpapi.NewProblem(http.StatusNotFound, "there is no such form", "the page "+agentsPath+" has all forms")
}

// openReview is an open review, with the arguments that the person saw.
func (h *Handler) openReview(ctx context.Context, session, id string, digest event.Digest) (projection.OpenApproval, error) {
	info, err := flow.Info(ctx, h.log, session)
	if err != nil {
		return projection.OpenApproval{}, err
	}
	for _, a := range info.Approvals {
		if a.InterruptID == id {
			a.ArgumentsDigest = digest
			return a, nil
		}
	}
	return projection.OpenApproval{InterruptID: id}, nil // Decide says why it is not open
}

// jsonOrText is a value in JSON, else the text as a string.
func jsonOrText(text string) jsontext.Value {
	if v := jsontext.Value(strings.TrimSpace(text)); v.IsValid() {
		return v
	}
	v, _ := json.Marshal(text, jsontext.AllowInvalidUTF8(true)) // a string
	return v
}

// agentProblem is the problem of an answer that does not count.
func agentProblem(err error) *httpapi.Problem {
	for _, x := range []error{flow.ErrAnswered, flow.ErrNotOpen, flow.ErrMismatch, flow.ErrExpired} {
		if errors.Is(err, x) {
			return httpapi.NewProblem(http.StatusConflict, err.Error(), "read the page again: it has what is open now")
		}
	}
	return problemOf(unprocessable(err))
}

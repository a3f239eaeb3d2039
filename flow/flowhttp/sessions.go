package flowhttp

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/projection"
)

// input is the body of POST inputs. Text is short for one message of text.
type input struct {
	ID       string          `json:"id,omitzero"`
	Text     string          `json:"text,omitzero"`
	Messages []event.Message `json:"messages,omitzero"`
	Steer    bool            `json:"steer,omitzero"`
}

// receipt is the answer to an input.
type receipt struct {
	Session string `json:"session"`
	Input   string `json:"input"`
	// Snapshot is reserved for the end of the turn.
	Snapshot string `json:"snapshot,omitzero"`
}

func (h *handler) postInput(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	var body input
	if err := h.read(w, r, &body, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	in := flow.Input{ID: body.ID, Messages: body.Messages, Steer: body.Steer}
	switch {
	case body.Text != "" && in.Messages != nil, body.Text == "" && len(in.Messages) == 0:
		return httpapi.NewProblem(http.StatusUnprocessableEntity, "the input has no text and no messages, or both", "give one of them")
	case body.Text != "":
		in.Messages = flow.Text(body.Text).Messages
	}
	for i := range in.Messages {
		if err := ofAUser(&in.Messages[i]); err != nil {
			return err
		}
	}
	ref, id, err := h.send(r.Context(), session, in)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusAccepted, receipt{Session: session, Input: id, Snapshot: ref.Snapshot})
	return nil
}

// ofAUser refuses a message that a client may not write: a page must not instruct the model,
// invent results, or name a body that it has not sent.
func ofAUser(m *event.Message) error {
	if m.Role != event.User {
		return httpapi.NewProblem(http.StatusUnprocessableEntity, fmt.Sprintf("a message has the role %q", m.Role), "send messages of the user")
	}
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Type != event.TextPart && p.Type != event.ImagePart && p.Type != event.AudioPart && p.Type != event.DocumentPart:
			return httpapi.NewProblem(http.StatusUnprocessableEntity, fmt.Sprintf("part %d has the type %q", i, p.Type), "send text, images, audio and documents")
		case !p.Blob.IsZero():
			return httpapi.NewProblem(http.StatusUnprocessableEntity, fmt.Sprintf("part %d names a blob", i), "send its data or a URL")
		}
	}
	return nil
}

// review is an open review. Session takes its answer; Child is the session of the sub-agent
// that asks, empty if there is none.
type review struct {
	Session         string         `json:"session"`
	Child           string         `json:"child_session,omitzero"`
	InterruptID     string         `json:"interrupt_id"`
	EffectID        string         `json:"effect_id,omitzero"`
	CallID          string         `json:"call_id,omitzero"`
	Name            string         `json:"name,omitzero"`
	Prompt          string         `json:"prompt,omitzero"`
	Detail          jsontext.Value `json:"detail,omitzero"`
	Arguments       jsontext.Value `json:"arguments,omitzero"`
	ArgumentsDigest event.Digest   `json:"arguments_digest,omitzero"`
	Seq             int64          `json:"seq"`
	Until           time.Time      `json:"until,omitzero"`
}

func newReview(session string, a *projection.OpenApproval) review {
	return review{Session: session, Child: a.SessionID, InterruptID: a.InterruptID, EffectID: a.EffectID, CallID: a.CallID, Name: a.Name, Prompt: a.Prompt,
		Detail: a.Detail, Arguments: a.Arguments, ArgumentsDigest: a.ArgumentsDigest, Seq: a.Seq, Until: a.ExpiresAt}
}

func reviewsOf(info *flow.RunInfo) []review {
	all := make([]review, 0, len(info.Approvals))
	for i := range info.Approvals {
		all = append(all, newReview(info.Session, &info.Approvals[i]))
	}
	return all
}

// status is a session as GET shows it.
type status struct {
	Session   string                `json:"session"`
	Seq       int64                 `json:"seq"`
	Status    flow.Status           `json:"status"`
	Agent     string                `json:"agent,omitzero"`
	Turn      ulid.ULID             `json:"turn_id,omitzero"`
	Due       time.Time             `json:"due,omitzero"`
	State     jsontext.Value        `json:"state,omitzero"`
	Messages  []event.Message       `json:"messages"`
	Artifacts []event.Artifact      `json:"artifacts,omitzero"`
	Reviews   []review              `json:"reviews"`
	Waits     []projection.OpenWait `json:"waits,omitzero"`
}

var sessionSet = projection.Of("flow:http", projection.History(), projection.Custom(), projection.Artifacts())

func (h *handler) session(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	info, err := flow.Info(r.Context(), h.log, session)
	if err != nil {
		return err
	}
	loaded, err := projection.LoadSet(r.Context(), h.log, session, sessionSet)
	if err != nil {
		return err
	}
	out := status{Session: session, Seq: loaded.Head.Seq, Status: info.Status, Agent: info.Agent, Due: info.Due, Reviews: reviewsOf(&info), Waits: info.Waits}
	if info.Turn != nil {
		out.Turn = info.Turn.ID
	}
	history, _ := projection.State(loaded, projection.History())
	entries, err := history.Messages()
	if err != nil {
		return err
	}
	out.Messages = make([]event.Message, len(entries))
	for i := range entries {
		out.Messages[i] = entries[i].Message
	}
	custom, _ := projection.State(loaded, projection.Custom())
	out.State = custom.Get(h.name).Raw()
	artifacts, _ := projection.State(loaded, projection.Artifacts())
	for _, a := range artifacts.Items {
		out.Artifacts = append(out.Artifacts, a.Artifact)
	}
	w.Header().Set("ETag", `"`+loaded.Head.Hash.String()+`"`)
	httpapi.WriteJSON(w, http.StatusOK, out)
	return nil
}

// answer is the body of POST answers.
type answer struct {
	InterruptID string `json:"interrupt_id"`
	// ArgumentsDigest is what the person saw. If it is given, the answer counts for these
	// arguments only.
	ArgumentsDigest event.Digest   `json:"arguments_digest,omitzero"`
	Decision        event.Decision `json:"decision"`
	Arguments       jsontext.Value `json:"arguments,omitzero"`
	Value           jsontext.Value `json:"value,omitzero"`
	Reason          string         `json:"reason,omitzero"`
}

func (h *handler) postAnswer(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	by, err := h.authorize(r, session)
	if err != nil {
		return err
	}
	var body answer
	if err := h.read(w, r, &body, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	from, err := h.decide(r.Context(), session, by, []answer{body})
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, map[string]any{"session": session, "after": from - 1})
	return nil
}

// decide records the answers of a person, and lets the turn go on. No answer is before event
// from. An answer that was recorded before is not recorded again.
func (h *handler) decide(ctx context.Context, session, by string, answers []answer) (from int64, err error) {
	head, err := h.log.Head(ctx, session)
	if err != nil {
		return 0, err
	}
	info, err := flow.Info(ctx, h.log, session)
	if err != nil {
		return 0, err
	}
	from = head.Seq + 1
	var decisions []flow.Answer
	for i := range answers {
		a := &answers[i]
		if !slices.Contains([]event.Decision{event.Approved, event.Denied, event.Answered}, a.Decision) {
			return 0, httpapi.NewProblem(http.StatusUnprocessableEntity, "the decision is "+strconv.Quote(string(a.Decision)), "give approved, denied or answered")
		}
		n := slices.IndexFunc(info.Approvals, func(o projection.OpenApproval) bool { return o.InterruptID == a.InterruptID })
		if n < 0 {
			seq, err := h.repeated(ctx, session, a)
			if err != nil {
				return 0, err
			}
			from = min(from, seq)
			continue
		}
		d := flow.Answer{Review: info.Approvals[n], Decision: a.Decision, Arguments: a.Arguments, By: by, Reason: a.Reason}
		if a.ArgumentsDigest != "" {
			d.Review.ArgumentsDigest = a.ArgumentsDigest
		}
		if a.Decision == event.Answered {
			d.Value = a.Value
		}
		decisions = append(decisions, d)
	}
	if len(decisions) > 0 {
		if _, err = flow.Decide(ctx, h.log, session, decisions...); err != nil {
			return 0, err
		}
	}
	return from, h.continueTop(ctx, &info)
}

// continueTop lets the open turn of a session continue. A child continues in the turn of its
// topmost parent.
func (h *handler) continueTop(ctx context.Context, info *flow.RunInfo) error {
	for info.Parent != "" {
		parent, err := flow.Info(ctx, h.log, info.Parent)
		if err != nil {
			return err
		}
		info = &parent
	}
	if info.Turn == nil {
		return nil
	}
	return h.resume(ctx, info.Session)
}

// repeated is the event of an answer that was recorded before: the client did not see that
// it was.
func (h *handler) repeated(ctx context.Context, session string, a *answer) (seq int64, _ error) {
	for e, err := range h.log.Read(ctx, session, eventlog.All().Backward()) {
		if err != nil {
			return 0, err
		}
		x, ok, err := event.Decode[event.ApprovalResolution](&e)
		if err != nil {
			return 0, err
		}
		if ok && x.InterruptID == a.InterruptID && x.Decision == a.Decision {
			return e.Seq, nil
		}
		if ok && x.InterruptID == a.InterruptID {
			return 0, httpapi.NewProblem(http.StatusConflict, fmt.Sprintf("review %q of session %q was answered already: %s by %s", a.InterruptID, session, x.Decision, x.By), "read the session again")
		}
	}
	return 0, httpapi.NewProblem(http.StatusConflict, fmt.Sprintf("session %q has no open review %q", session, a.InterruptID), "read the session again: it has the open reviews")
}

func (h *handler) postAbort(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	by, err := h.authorize(r, session)
	if err != nil {
		return err
	}
	var body struct {
		Reason string `json:"reason,omitzero"`
	}
	if err := h.read(w, r, &body, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	before, err := flow.Abort(r.Context(), h.log, session, event.Abort{By: by, Reason: body.Reason})
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, map[string]any{"session": session, "status_before": before})
	return nil
}

// snapshot is a snapshot in JSON.
type snapshot struct {
	Session    string           `json:"session"`
	Snapshot   string           `json:"snapshot"`
	Parent     string           `json:"parent,omitzero"`
	Index      int              `json:"index"`
	Seq        int64            `json:"seq"`
	Turn       int              `json:"turn"`
	Status     flow.Status      `json:"status,omitzero"`
	StopReason string           `json:"stop_reason,omitzero"`
	Error      string           `json:"error,omitzero"`
	State      jsontext.Value   `json:"state,omitzero"`
	Messages   []event.Message  `json:"messages,omitzero"`
	Artifacts  []event.Artifact `json:"artifacts,omitzero"`
}

func newSnapshot[S any](s *flow.Snapshot[S]) (snapshot, error) {
	state, err := json.Marshal(s.Custom, json.Deterministic(true))
	if err != nil {
		return snapshot{}, err
	}
	out := snapshot{Session: s.Ref.Session, Snapshot: s.Ref.Snapshot, Parent: s.Parent, Index: s.Index, Seq: s.Seq, Turn: s.Turn,
		Status: s.Status, StopReason: s.StopReason, State: state, Messages: s.Messages, Artifacts: s.Artifacts}
	if s.Err != nil {
		out.Error = s.Err.Error()
	}
	return out, nil
}

// listed returns the snapshots of the active path, newest first.
func (h *handler) listed(ctx context.Context, session string) ([]snapshot, error) {
	all := []snapshot{}
	if _, err := h.log.Head(ctx, session); err != nil {
		return nil, err
	}
	for s, err := range projection.Snapshots(ctx, h.log, session, false) {
		if err != nil {
			return nil, err
		}
		if s.Snapshot.SnapshotID == "" {
			continue
		}
		all = append(all, snapshot{Session: session, Snapshot: s.Snapshot.SnapshotID, Parent: s.Snapshot.ParentSnapshotID, Index: s.Snapshot.Index, Seq: s.Event.Seq, Turn: s.Snapshot.TurnIndex})
	}
	slices.SortStableFunc(all, func(a, b snapshot) int { return int(b.Seq - a.Seq) })
	return all, nil
}

func (h *handler) snapshots(w http.ResponseWriter, r *http.Request) error {
	session := r.PathValue("session")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	all, err := h.listed(r.Context(), session)
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, map[string]any{"session": session, "snapshots": all})
	return nil
}

// latest names the newest snapshot.
const latest = "latest"

func (h *handler) oneSnapshot(w http.ResponseWriter, r *http.Request) error {
	session, id := r.PathValue("session"), r.PathValue("id")
	if _, err := h.authorize(r, session); err != nil {
		return err
	}
	if id == latest {
		all, err := h.listed(r.Context(), session)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return httpapi.NewProblem(http.StatusNotFound, "session "+strconv.Quote(session)+" has no snapshot", "wait for the end of a turn")
		}
		id = all[0].Snapshot
	}
	s, err := h.snapshot(r.Context(), flow.Ref{Session: session, Snapshot: id})
	if err != nil {
		return err
	}
	httpapi.WriteJSON(w, http.StatusOK, s)
	return nil
}

func (h *handler) approvals(w http.ResponseWriter, r *http.Request) error {
	if _, err := h.authorize(r, ""); err != nil {
		return err
	}
	all := []review{}
	for info, err := range flow.Runs(r.Context(), h.log) {
		if err != nil {
			if info.Session == "" {
				return err
			}
			continue // logtool agent runs shows a session that cannot be read
		}
		if info.Parent != "" {
			continue // the parent has its reviews
		}
		if _, denied := h.authorize(r, info.Session); denied == nil {
			all = append(all, reviewsOf(&info)...)
		}
	}
	httpapi.WriteJSON(w, http.StatusOK, map[string]any{"reviews": all})
	return nil
}

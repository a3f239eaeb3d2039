package flow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Question is what a person is asked before an effect runs. The turn hibernates until all
// questions of a batch are answered.
type Question struct {
	Prompt string
	// Detail is shown with the prompt. It must encode to JSON.
	Detail any
	// Expires is how long an answer is accepted; 0 is for ever.
	Expires time.Duration
	// Lapse decides what follows after that; empty is event.LapseWait: the next Resume asks
	// anew, and Serve a minute after the review expired.
	Lapse event.Lapse
}

// awaitReviews checks that all reviews of the effects are answered. If not, it asks for
// the missing ones and hibernates. The caller holds r.mu.
func (t *turn) awaitReviews(ctx context.Context, open []*effect, asked []*Question) error {
	var missing []int
	waiting := 0
	for i, x := range open {
		if asked[i] == nil {
			if err := t.compareUnasked(x); err != nil {
				return err
			}
			x.answer = givenAnswer(x)
			continue
		}
		state, err := t.reviewState(x)
		switch {
		case err != nil:
			return err
		case state == reviewMissing:
			missing = append(missing, i)
		case state == reviewOpen:
			waiting++
		}
	}
	if len(missing) == 0 && waiting == 0 {
		return nil
	}
	requests := make([]func(cursor string) []event.Event, len(missing))
	for i, m := range missing {
		request, err := t.request(open[m], asked[m])
		if err != nil {
			return err
		}
		requests[i] = request
	}
	first := open[0]
	if len(missing) > 0 {
		first = open[missing[0]]
	}
	return t.hibernate(ctx, pause{kind: pauseReview, ordinal: first.ordinal, effect: first.key, effectKind: first.kind, name: first.name,
		check: func() error { return t.checkLapsed(open) },
		events: func(cursor string) (events []event.Event) {
			for _, request := range requests {
				events = append(events, request(cursor)...)
			}
			return events
		}})
}

// givenAnswer is the answer that allowed an effect that began already.
func givenAnswer(x *effect) *event.ApprovalResolution {
	if x.rec == nil || x.rec.inherited || x.rec.review == nil {
		return nil
	}
	return x.rec.review.answer
}

// reviewState is the state of the review of an effect in the log.
type reviewState int

const (
	reviewMissing reviewState = iota // ask
	reviewOpen                       // wait
	reviewClosed                     // x.answer is set
)

// reviewState sets the answer of an effect. The answer of a review that lapsed is a
// denial.
func (t *turn) reviewState(x *effect) (reviewState, error) {
	if x.rec == nil || x.rec.review == nil {
		return reviewMissing, nil
	}
	v := x.rec.review
	x.lapsed = ""
	if v.answer != nil {
		x.answer = v.answer
		return reviewClosed, nil
	}
	if v.erased {
		return reviewMissing, nil
	}
	if v.canceled {
		x.answer = &event.ApprovalResolution{InterruptID: v.request.InterruptID, Decision: event.Denied, Reason: "the review was canceled"}
		return reviewClosed, nil
	}
	if v.request.ExpiresAt.IsZero() || !t.r.now().After(v.request.ExpiresAt) {
		return reviewOpen, nil
	}
	x.lapsed = v.request.InterruptID
	switch v.request.Lapse {
	case event.LapseDeny:
		x.answer = &event.ApprovalResolution{InterruptID: v.request.InterruptID, Decision: event.Denied, Reason: "the review expired"}
		return reviewClosed, nil
	case event.LapseFail:
		return 0, fmt.Errorf("review of effect %q: %w", x.name, ErrExpired)
	}
	return reviewMissing, nil
}

// checkLapsed returns errAgain if somebody answered a review in the last instant before
// it lapsed. The caller holds r.mu.
func (t *turn) checkLapsed(open []*effect) error {
	control, _ := projection.State(t.r.live, projection.Control())
	for _, x := range open {
		asked := func(a projection.OpenApproval) bool { return a.InterruptID == x.lapsed }
		if x.lapsed != "" && !slices.ContainsFunc(control.Approvals, asked) {
			return errAgain
		}
	}
	return nil
}

// request makes the request of a review.
func (t *turn) request(x *effect, r *Question) (func(cursor string) []event.Event, error) {
	detail := jsontext.Value(nil)
	if r.Detail != nil {
		var err error
		if detail, err = encode(r.Detail); err != nil {
			return nil, fmt.Errorf("detail of the review of %q: %w", x.name, err)
		}
	}
	digest, err := event.ArgumentsDigest(x.nonce, orNull(x.arguments))
	if err != nil {
		return nil, fmt.Errorf("arguments of effect %q: %w", x.name, err)
	}
	q := event.ApprovalRequest{InterruptID: t.r.options.NewID(), EffectID: x.key, CallID: x.callID, Name: x.name, TurnID: t.rec.turn,
		Ordinal: x.ordinal, Nonce: x.nonce, ArgumentsDigest: digest, Arguments: x.arguments, Prompt: r.Prompt, Lapse: r.Lapse, Detail: detail}
	if r.Expires > 0 {
		q.ExpiresAt = t.r.now().Add(r.Expires)
	}
	return func(cursor string) []event.Event {
		q.CursorID = cursor
		if x.lapsed != "" {
			return []event.Event{event.New(event.ApprovalCancelation{InterruptID: x.lapsed, Reason: "expired"}), event.New(q)}
		}
		return []event.Event{event.New(q)}
	}, nil
}

// answered is the result of an effect that a person answered instead of running it; false
// if the effect may run.
func (x *effect) answered() (o outcome, failed *event.EffectError, ok bool) {
	a := x.answer
	switch {
	case a == nil || a.Decision == event.Approved:
		return o, nil, false
	case a.Decision != event.Answered:
		message := "a person denied it"
		switch {
		case x.lapsed != "":
			message = a.Reason
		case a.Reason != "":
			message += ": " + a.Reason
		}
		return o, &event.EffectError{Code: codeDenied, Message: message}, true
	case x.kind == kindTool:
		return outcome{parts: []event.Part{event.Text(textOf(a.Answer))}}, nil, true
	}
	return outcome{result: a.Answer}, nil, true
}

// textOf is a JSON value as a text for a model: a string as it is.
func textOf(v jsontext.Value) string {
	if v.Kind() == jsontext.KindString {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return string(text)
		}
	}
	return string(v)
}

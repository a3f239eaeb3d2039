package flowhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/projection"
)

// segment is the part of a turn that answers one input: the messages after the input, up to
// the next input or the end of the turn.
type segment struct {
	turn ulid.ULID
	// id is the same for every viewer: the turn's, and that of the input if it steered the
	// turn.
	id string
	// from is the first event after the input.
	from int64
	// left are events that a head_moved took off the path.
	left []event.Stretch
	head int64 // when the segment was found
	// paused is the newest hibernation of the turn at head, 0 if it has none.
	paused int64
}

// encoder writes what happens in a turn in the words of a client.
type encoder interface {
	begin(s *segment) error
	// delta gets the pieces of a message, message the whole message.
	delta(d *eventlog.Delta) error
	message(id ulid.ULID, m *event.Message) error
	review(q *event.ApprovalRequest) error
	resolution(a *event.ApprovalResolution) error
	patch(p *event.CustomPatch) error
	// pause ends the stream since the turn waits for persons, end since it ended, and next
	// since another input goes into it.
	pause(open []projection.OpenApproval) error
	end(c *event.TurnCompletion) error
	next() error
}

var errGone = errors.New("the client has gone")

// sendAll sends frames until the client has gone.
func sendAll[T any](send func(T) bool, all []T) error {
	for _, x := range all {
		if !send(x) {
			return errGone
		}
	}
	return nil
}

// found is a find of a segment that is known.
func (s *segment) found(context.Context) (*segment, error) { return s, nil }

// errAgain: a client has pieces that became void, and it cannot take them back.
var errAgain = errors.New("a part of the answer was written again: follow the turn from its start")

// missingTurn says that a session has no turn of an input.
func missingTurn(session, input string) error {
	return httpapi.NewProblem(http.StatusNotFound, fmt.Sprintf("session %q has no turn of input %q", session, input), "send the input")
}

var turnSet = projection.Of("flow:http-turn", projection.Calls(), projection.Control())

// find returns the segment of an input, or the newest one if input is empty. An input that
// waits for its turn has none.
func (h *handler) find(ctx context.Context, session, input string) (*segment, error) {
	l, err := projection.LoadSet(ctx, h.log, session, turnSet)
	if err != nil {
		return nil, err
	}
	control, _ := projection.State(l, projection.Control())
	if input != "" && slices.ContainsFunc(control.Inbox, func(in projection.PostedInput) bool { return in.InputID == input }) {
		return nil, missingTurn(session, input)
	}
	s, err := h.segmentAt(ctx, session, input, l)
	if s != nil || err != nil {
		return s, err
	}
	if input == "" {
		return nil, missingTurn(session, input)
	}
	return h.findOld(ctx, session, input)
}

// segmentAt is the segment of an input in the last turn of a loaded session, nil if the turn
// does not have the input.
func (h *handler) segmentAt(ctx context.Context, session, input string, l *projection.Loaded) (*segment, error) {
	calls, _ := projection.State(l, projection.Calls())
	turn := calls.Turn
	if turn == nil {
		return nil, nil
	}
	s := &segment{turn: turn.ID, id: turn.ID.String(), from: turn.Seq, left: turn.Left, head: l.Head.Seq}
	if turn.Hibernated != nil {
		s.paused = turn.Hibernated.Seq
	}
	found := input == "" || turn.InputID == input
	for e, err := range h.log.Read(ctx, session, eventlog.Between(turn.Seq, l.Head.Seq)) {
		if err != nil {
			return nil, err
		}
		if e.Type.Name() == event.TurnCompleted && !s.hidden(e.Seq) {
			break // later messages belong to the next turn
		}
		if m := userMessage(&e); m != nil && !s.hidden(e.Seq) && (input == "" || m.InputID == input) {
			found = true
			s.from = e.Seq + 1
			if m.InputID != "" && m.InputID != turn.InputID {
				s.id = turn.ID.String() + "-" + m.InputID
			}
		}
	}
	if !found {
		return nil, nil
	}
	return s, nil
}

// await waits until an input has gone into a turn, and returns its segment.
func (h *handler) await(ctx context.Context, session, input string) (*segment, error) {
	head, err := h.log.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	s, err := h.find(ctx, session, input)
	var missing *httpapi.Problem
	if !errors.As(err, &missing) {
		return s, err
	}
	for e, err := range h.log.Watch(ctx, session, head.Seq+1) {
		if err != nil {
			return nil, err
		}
		t, _, err := event.Decode[event.TurnStart](&e)
		if err != nil {
			return nil, err
		}
		if m := userMessage(&e); t.InputID != input && (m == nil || m.InputID != input) {
			continue
		}
		if s, err := h.find(ctx, session, input); !errors.As(err, &missing) {
			return s, err
		}
	}
	return nil, context.Cause(ctx)
}

// after waits until an input has gone into a turn.
func (h *handler) after(session, input string) func(context.Context) (*segment, error) {
	return func(ctx context.Context) (*segment, error) { return h.await(ctx, session, input) }
}

// newest finds the segment that a client follows: of the input that runs next, else the
// newest one.
func (h *handler) newest(ctx context.Context, session string) (func(context.Context) (*segment, error), error) {
	info, err := flow.Info(ctx, h.log, session)
	if err != nil {
		return nil, err
	}
	if n := len(info.Inbox); n > 0 && len(info.Approvals) == 0 && len(info.Waits) == 0 {
		return h.after(session, info.Inbox[n-1].InputID), nil
	}
	s, err := h.find(ctx, session, "")
	if err != nil {
		return nil, err
	}
	return s.found, nil
}

// findOld finds the segment of an input whose turn is not the last one on the path: a later
// turn began, or the turn failed. It reads the session as it was when the turn ended.
func (h *handler) findOld(ctx context.Context, session, input string) (*segment, error) {
	ends := map[ulid.ULID]int64{}
	found := false
	for e, err := range h.log.Read(ctx, session, eventlog.All().Backward()) {
		if err != nil {
			return nil, err
		}
		p, ended, err := event.Decode[event.TurnCompletion](&e)
		if err != nil {
			return nil, err
		}
		if _, later := ends[p.TurnID]; ended && !later {
			ends[p.TurnID] = e.Seq
		}
		m := userMessage(&e)
		found = found || m != nil && m.InputID == input
		t, begins, err := event.Decode[event.TurnStart](&e)
		if err != nil {
			return nil, err
		}
		end := ends[e.ID]
		if !begins || !found && t.InputID != input || end == 0 {
			continue
		}
		l, err := projection.LoadSet(ctx, h.log, session, turnSet, projection.Options{At: end})
		if err != nil {
			return nil, err
		}
		if s, err := h.segmentAt(ctx, session, input, l); s != nil || err != nil {
			return s, err
		}
	}
	return nil, missingTurn(session, input)
}

// userMessage is the message of an event if a client sent it.
func userMessage(e *event.Event) *event.Message {
	if e.Type.Name() != event.MessageAdded {
		return nil
	}
	m, ok, err := event.Decode[event.Message](e)
	if !ok || err != nil || m.Role != event.User {
		return nil
	}
	return &m
}

func (s *segment) hidden(seq int64) bool {
	return slices.ContainsFunc(s.left, func(x event.Stretch) bool { return x.From <= seq && seq <= x.To })
}

// stream encodes a segment while it grows, from its start, and returns when it ends. find
// waits for the segment: the client has the header of the answer meanwhile.
func (h *handler) stream(ctx context.Context, session string, find func(context.Context) (*segment, error), enc encoder) error {
	s, err := find(ctx)
	if err != nil {
		return err
	}
	if err := enc.begin(s); err != nil {
		return err
	}
	for x, err := range follow(ctx, h.log, session, s.from) {
		if err != nil {
			return err
		}
		if x.delta != nil {
			err = enc.delta(x.delta)
		} else if !s.hidden(x.event.Seq) {
			var ended bool
			ended, err = h.encode(ctx, session, s, x.event, enc)
			if ended {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// encode encodes an event of a turn, and reports whether it ends the stream.
func (h *handler) encode(ctx context.Context, session string, s *segment, e *event.Event, enc encoder) (ended bool, _ error) {
	if e.Redacted() {
		return false, nil
	}
	p, err := e.Payload()
	if err != nil {
		return false, err
	}
	switch p := p.(type) {
	case event.Message:
		if p.Role == event.User {
			return true, enc.next()
		}
		return false, enc.message(e.ID, &p)
	case event.ApprovalRequest:
		return false, enc.review(&p)
	case event.ApprovalResolution:
		return false, enc.resolution(&p)
	case event.CustomPatch:
		if p.Name == h.name {
			return false, enc.patch(&p)
		}
	case event.TurnHibernation:
		if e.Seq <= s.head && e.Seq != s.paused {
			return false, nil // the turn went on
		}
		info, err := flow.Info(ctx, h.log, session)
		if err != nil {
			return true, err
		}
		if info.Cursor != nil && info.Cursor.Cursor.ID == p.Cursor.ID && len(info.Approvals) > 0 {
			return true, enc.pause(info.Approvals)
		}
	case event.TurnCompletion:
		if p.TurnID == s.turn {
			return true, enc.end(&p)
		}
	case event.HeadMove:
		if e.Seq > s.head {
			return true, errAgain
		}
	}
	return false, nil
}

// growing is the message that streams. Its parts are streamed in order only: a part that
// cannot be streamed, or a piece that was missed, ends the streaming of the message.
type growing struct {
	message ulid.ULID
	attempt int
	texts   []string // of the parts so far
	stopped bool
}

// add adds a piece. fresh reports whether it begins a part, and ok whether it can be
// streamed. The error is errAgain if the pieces before are void.
func (g *growing) add(d *eventlog.Delta) (fresh, ok bool, err error) {
	if d.Message != g.message {
		*g = growing{message: d.Message, attempt: d.Attempt}
	}
	if d.Attempt > g.attempt {
		if len(g.texts) > 0 {
			return false, false, errAgain
		}
		g.attempt, g.stopped = d.Attempt, false
	}
	streams := d.Kind == event.TextPart || d.Kind == event.ReasoningPart
	if g.stopped || !streams || d.Attempt < g.attempt {
		g.stopped = g.stopped || d.Attempt == g.attempt
		return false, false, nil
	}
	fresh = d.Part == len(g.texts)
	if fresh {
		g.texts = append(g.texts, "")
	}
	if d.Part != len(g.texts)-1 || d.Offset != len(g.texts[d.Part]) {
		g.stopped = true
		if fresh {
			g.texts = g.texts[:d.Part]
		}
		return false, false, nil
	}
	g.texts[d.Part] += d.Text
	return fresh, true, nil
}

// rest returns the text of a part that was not streamed, and whether a part of it was. The
// error is errAgain if the streamed text is another one.
func (g *growing) rest(message ulid.ULID, part int, text string) (rest string, begun bool, err error) {
	if message != g.message || part >= len(g.texts) {
		return text, false, nil
	}
	rest, ok := strings.CutPrefix(text, g.texts[part])
	if !ok {
		return "", true, errAgain
	}
	return rest, true, nil
}

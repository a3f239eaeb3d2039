package flow

import (
	"context"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Input begins a turn, or steers a running one.
type Input struct {
	// ID identifies the input: an input that is sent twice is stored once, and an input whose
	// turn failed tries the turn again. Send makes one if it is empty.
	ID       string
	Messages []event.Message
	// Steer asks for the input to go into the running turn, before its next model call. If
	// no turn runs, it begins one.
	Steer bool
	// PostOnly stores the input and starts no runner here: another process runs the session,
	// see Agent.Serve. The Agent of Send then needs Name and Log only.
	PostOnly bool
}

// Text is an input of one message of the user.
func Text(text string) Input {
	return Input{Messages: []event.Message{{Role: event.User, Parts: []event.Part{event.Text(text)}}}}
}

func (in Input) clone() Input {
	in.Messages = slices.Clone(in.Messages)
	return in
}

// check returns an error for an input that no turn can begin with.
func (in Input) check() error {
	if len(in.Messages) == 0 {
		return fmt.Errorf("%w: the input has no messages", event.Rule("empty_message"))
	}
	for i, m := range in.Messages {
		if err := event.Validate(m); err != nil {
			return fmt.Errorf("messages[%d] of the input: %w", i, err)
		}
	}
	return nil
}

// external is the event of an input that waits in a store.
func (in Input) external(store string) event.Event {
	return event.New(event.External{Source: "flow", InputID: in.ID, Kind: "input", Steer: in.Steer, Store: store, Messages: in.Messages})
}

// messages are the events of an input that begins a turn or goes into one.
func (in Input) messages() (events []event.Event) {
	for _, m := range in.Messages {
		m.InputID = in.ID
		events = append(events, event.New(m))
	}
	return events
}

// posted reads a waiting input.
func (r *runner) posted(ctx context.Context, seq int64) (x event.External, id ulid.ULID, err error) {
	e := r.stored
	if e == nil || e.Seq != seq {
		read, err := r.log.Event(ctx, r.session, seq)
		if err != nil {
			return x, id, fmt.Errorf("read input at event %d of session %q: %w", seq, r.session, err)
		}
		e = &read
	}
	x, _, err = event.Decode[event.External](e)
	return x, e.ID, err
}

// inputIDs are the ids of the inputs on the path.
type inputIDs struct {
	IDs map[string]bool `json:"ids,omitzero"`
	// Last is the seq of the newest turn_started on the path.
	Last int64 `json:"last,omitzero"`
}

// inputs folds the ids of inputs, to find an input that is sent again.
func inputs() projection.Projection[inputIDs] {
	return projection.Projection[inputIDs]{
		Name: "flow:inputs", Version: 2, Apply: (*inputIDs).apply,
		Digest: func(*inputIDs) (event.Digest, error) { return "", nil },
	}
}

func (s *inputIDs) apply(e *event.Event) error {
	id, err := e.InputID()
	if err != nil || id == "" {
		return err
	}
	if s.IDs == nil {
		s.IDs = map[string]bool{}
	}
	s.IDs[id] = true
	if e.Type.Name() == event.TurnStarted {
		s.Last = e.Seq
	}
	return nil
}

// knows reports whether the path or the inbox has an input.
func knows(l projection.States, id string) bool {
	path, _ := projection.State(l, inputs())
	if path.IDs[id] {
		return true
	}
	return waiting(l, id)
}

// waiting reports whether the inbox has an input.
func waiting(l projection.States, id string) bool {
	_, ok := inInbox(l, id)
	return ok
}

func inInbox(l projection.States, id string) (projection.PostedInput, bool) {
	control, _ := projection.State(l, projection.Control())
	i := slices.IndexFunc(control.Inbox, func(in projection.PostedInput) bool { return in.InputID == id })
	if i < 0 {
		return projection.PostedInput{}, false
	}
	return control.Inbox[i], true
}

package secrets

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Policy decides what happens to secrets that are about to be stored. Its methods are
// hooks for eventlog.Options: give both to the log. The zero Policy does nothing. A
// Policy may be used concurrently, if its function may.
//
// A policy does not screen snapshots: their states are made of the events, and a digest
// covers them. Nor does it screen the bodies of copies.
type Policy struct {
	// Scanner finds the secrets. They are stored, unless Mask or Refuse is set.
	Scanner *Scanner
	// Found, if not nil, is called for each secret that is not refused. A retry calls it
	// again.
	Found func(Located)
	// Mask stores masks in the place of secrets. A digest that a program made of the secret,
	// for example arguments_digest, does not fit the mask. Structural members
	// (event.Type.Structural) stay as they are, so that calls find their results; Found gets
	// their secrets with Unmasked set.
	Mask bool
	// Refuse refuses an append, or a body, with a secret. The error is a *FoundError.
	Refuse bool
}

// FoundError reports an event or a body with secrets that was not stored. It matches
// eventlog.ErrRefused. Remove the secret, or use a Policy with Mask.
type FoundError struct{ Found []Located }

func (e *FoundError) Error() string {
	text := fmt.Sprintf("secret found: %s: %s", e.Found[0].Member, e.Found[0].Rule)
	if n := len(e.Found) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text
}

// Unwrap is eventlog.ErrRefused.
func (e *FoundError) Unwrap() error { return eventlog.ErrRefused }

// Event screens an event; see eventlog.Options.Hook.
func (p Policy) Event(_ context.Context, session string, e *event.Event) error {
	if p.Scanner == nil || e.Type.Name() == event.ProjectionSnapshotted {
		return nil
	}
	x, err := p.Scanner.screen(session, e)
	switch {
	case errors.Is(err, errOpaque):
		return nil // the append refuses the event
	case err != nil || len(x.found) == 0:
		return err
	case p.Refuse:
		return &FoundError{x.found}
	}
	for i := range x.found {
		p.report(x.found[i])
	}
	if p.Mask {
		return x.apply(e)
	}
	return nil
}

func (p Policy) report(f Located) {
	if p.Found != nil {
		p.Found(f)
	}
}

// Body screens a body; see eventlog.Options.BodyHook. A body that does not begin with
// UTF-8 text passes as it is.
func (p Policy) Body(_ context.Context, body io.Reader) (io.Reader, error) {
	if p.Scanner == nil {
		return body, nil
	}
	return newBodyReader(p.Scanner, body, p.Mask || p.Refuse, func(rule string) error {
		f := Located{Member: "blob", Rule: rule}
		if p.Refuse {
			return &FoundError{[]Located{f}}
		}
		p.report(f)
		return nil
	}), nil
}

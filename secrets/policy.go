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
	scanner *Scanner
	action  action
	found   func(Located)
}

type action int

const (
	warning action = iota
	masking
	refusing
)

// Warn returns a policy that stores secrets and calls found for each. A retry calls
// found again.
func Warn(s *Scanner, found func(Located)) Policy { return Policy{s, warning, found} }

// Mask returns a policy that stores masks in the place of secrets. It calls found, which
// may be nil, for each secret. A digest that a program made of the secret, for example
// arguments_digest, does not fit the mask. Structural members (event.Type.Structural) stay as they
// are, so that calls find their results; found gets their secrets with Unmasked set.
func Mask(s *Scanner, found func(Located)) Policy { return Policy{s, masking, found} }

// Refuse returns a policy that refuses an append, or a body, with a secret. The error is
// a *FoundError.
func Refuse(s *Scanner) Policy { return Policy{scanner: s, action: refusing} }

// FoundError reports an event or a body with secrets that was not stored. It matches
// eventlog.ErrRefused.
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
	if p.scanner == nil || e.Type.Name() == event.ProjectionSnapshotted {
		return nil
	}
	x, err := p.scanner.screen(session, e)
	switch {
	case errors.Is(err, errOpaque):
		return nil // the append refuses the event
	case err != nil || len(x.found) == 0:
		return err
	case p.action == refusing:
		return &FoundError{x.found}
	}
	for i := range x.found {
		p.report(x.found[i])
	}
	if p.action == masking {
		return x.apply(e)
	}
	return nil
}

func (p Policy) report(f Located) {
	if p.found != nil {
		p.found(f)
	}
}

// Body screens a body; see eventlog.Options.BodyHook. A body that does not begin with
// UTF-8 text passes as it is.
func (p Policy) Body(_ context.Context, body io.Reader) (io.Reader, error) {
	if p.scanner == nil {
		return body, nil
	}
	return newBodyReader(p.scanner, body, p.action != warning, func(rule string) error {
		f := Located{Member: "blob", Rule: rule}
		if p.action == refusing {
			return &FoundError{[]Located{f}}
		}
		p.report(f)
		return nil
	}), nil
}

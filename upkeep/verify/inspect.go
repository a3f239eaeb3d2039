package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/sealed"
)

// inspection is the result of checking an event alone, without the events before it.
type inspection struct {
	link   line.Link
	faults []fault
	broken []event.Rule // rules that an import broke
	erased bool
	kept   jsontext.Value // of an erased event
	// Of the payload:
	facts     event.Facts
	redaction *event.RedactionNote // unless it is a copy
	run       *runFact             // of a turn, claim, effect or review
}

// fault is something wrong with one event.
type fault struct {
	rule, detail string
	blob         event.Digest // the bad blob, if it is one
}

func (n *inspection) fault(rule, detail string) {
	n.faults = append(n.faults, fault{rule: rule, detail: detail})
}

// inspector inspects events one by one. It is for one goroutine; the blob checks
// are shared.
type inspector struct {
	log    *eventlog.Log
	engine engine.Engine
	blobs  *blobChecks
}

// inspect checks e alone and sets n. An error means that the check could not be made.
func (i *inspector) inspect(ctx context.Context, e *event.Event, n *inspection) (err error) {
	if err := sealed.Of(e).Names(e.Seq, e.SessionID); err != nil {
		return fmt.Errorf("event %d of session %q: %w", e.Seq, e.SessionID, err)
	}
	n.link = sealed.Of(e).Link()
	if err := sealed.Of(e).CheckJSON(); err != nil {
		n.fault(rulePayload, err.Error())
	}
	if mark.MayBeIn(e.Metadata, mark.Broken) {
		n.broken = e.Broken()
	}
	readable := true
	if !e.Redacted() {
		readable, err = i.needs(ctx, e, n)
	}
	switch {
	case err != nil:
	case e.Redacted(): // possibly just now
		i.erased(e, n)
	case readable:
		i.payload(e, n)
	}
	if _, _, spilled := e.Spilled(); spilled {
		e.Data = nil // it may be large
	}
	return err
}

func (i *inspector) erased(e *event.Event, n *inspection) {
	n.erased, n.kept = true, e.Kept().Clone()
	o, _, outlined := event.OutlineOf(e)
	if outlined != nil {
		n.fault(rulePayload, outlined.Error())
	}
	facts, err := e.Facts()
	if err != nil && !errors.Is(err, event.ErrRedacted) {
		n.fault(ruleOf(err), err.Error())
	}
	n.facts, n.facts.Outline = facts, o
	n.note(e)
}

// needs checks e's blobs, and fetches its data. readable is false if the data is
// missing.
func (i *inspector) needs(ctx context.Context, e *event.Event, n *inspection) (readable bool, err error) {
	spilled, size, _ := e.Spilled()
	readable = true
	for _, d := range e.Blobs() {
		var bad error
		if d == spilled {
			bad = i.fetch(ctx, e, size)
			readable = bad == nil
		} else {
			bad = i.blobs.check(ctx, i.log, d)
		}
		switch {
		case bad == nil:
		case ctx.Err() != nil || errors.Is(bad, eventlog.ErrClosed):
			return false, bad
		case errors.Is(bad, eventlog.ErrBlobNotFound) && i.erasedSince(ctx, e):
			return false, nil
		default:
			n.faults = append(n.faults, fault{ruleBlob, bad.Error(), d})
		}
	}
	return readable, nil
}

// erasedSince reports whether e was redacted after it was read, so that its blob is missing.
// Then e becomes the redacted event.
func (i *inspector) erasedSince(ctx context.Context, e *event.Event) bool {
	now, err := i.log.Event(ctx, e.SessionID, e.Seq)
	if err != nil || !now.Redacted() || now.Hash() != e.Hash() {
		return false
	}
	*e = now
	return true
}

var errBlobSize = errors.New("the size of the blob differs from the size on the line")

// fetch reads e's spilled data.
func (i *inspector) fetch(ctx context.Context, e *event.Event, size int64) error {
	d, _, _ := e.Spilled()
	r, err := i.log.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	data, err := engine.ReadBlob(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if int64(len(data)) != size {
		return fmt.Errorf("%w: %d bytes, not %d", errBlobSize, len(data), size)
	}
	e.Data = data
	return nil
}

// payload checks the data of an event.
func (i *inspector) payload(e *event.Event, n *inspection) {
	facts, err := e.Check()
	if err != nil {
		n.fault(ruleOf(err), err.Error())
	}
	if errors.Is(err, event.ErrInvalidData) {
		return // readers and other programs may understand it in different ways
	}
	n.facts = facts
	n.note(e)
}

// note notes what the other checks need of a payload besides its facts.
func (n *inspection) note(e *event.Event) {
	n.readRun(e)
	if e.Type.Name() != event.Redacted || e.Copied() { // a copy speaks of the original
		return
	}
	if note, _, err := event.Decode[event.RedactionNote](e); err == nil {
		n.redaction = &note
	}
}

// ruleOf names the rule that an error of a payload reports.
func ruleOf(err error) string {
	switch {
	case errors.Is(err, event.ErrVersion):
		return RuleVersion
	case errors.Is(err, event.ErrInvalidBlob):
		return ruleBlob
	case errors.Is(err, event.ErrInvalidTree):
		return ruleTree
	case errors.Is(err, event.Rule("unknown_role")):
		return ruleRole
	}
	if rule, ok := errors.AsType[event.Rule](err); ok && rule.Conversation() {
		return string(rule)
	}
	return rulePayload
}

// blobChecks remembers blobs that were found sound, for all inspectors.
type blobChecks struct {
	mu    sync.Mutex
	sound map[event.Digest]struct{}
}

// maxSound bounds how many are remembered.
const maxSound = 1 << 20

func (b *blobChecks) check(ctx context.Context, log *eventlog.Log, d event.Digest) error {
	b.mu.Lock()
	_, sound := b.sound[d]
	b.mu.Unlock()
	if sound {
		return nil
	}
	r, err := log.OpenBlob(ctx, d)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sound == nil || len(b.sound) >= maxSound {
		b.sound = map[event.Digest]struct{}{}
	}
	b.sound[d] = struct{}{}
	return nil
}

// Package transfer copies sessions between logs, and between a log and a stream of
// lines: convert, backup, export and import. Lines, hashes and blobs stay as they
// are, and everything is verified on the way.
package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// SourceError reports that the source session is damaged or unreadable, or one of
// its parents. The destination is fine.
type SourceError struct {
	Session string
	Cause   error
}

func (e *SourceError) Error() string { return "convert: " + ofSession(e.Session, e.Cause).Error() }

// Unwrap is the cause.
func (e *SourceError) Unwrap() error { return e.Cause }

// errTail is inside a SourceError of a session that was copied up to its damage.
var errTail = errors.New("the bytes after the last complete append may hold events, and are not copied")

// Convert copies sessions of src, or all if none is named, into dst: lines and blobs
// verbatim, parents before their forks; a named fork brings its parents. Events that
// dst has already are skipped. Others may append to src meanwhile: each session is
// copied up to the end of an append, with everything that was acknowledged before
// Convert began with it. Convert holds the store lock of src, shared, so that
// nothing is redacted or removed meanwhile: a loop over it must not do that either.
//
// The sequence yields each session when it is done; a parent comes again when a fork
// that was made meanwhile needs more of it. A session that could not be copied whole
// comes with a *SourceError, or with a *eventlog.ConflictError if dst has another
// history, and the others follow. Any other error ends the sequence.
func Convert(ctx context.Context, dst, src *eventlog.Log, sessions ...string) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		err := src.Hold(ctx, func(ctx context.Context) error {
			c := conversion{dst: dst, src: src, named: sessions, copied: map[string]int64{}, failed: map[string]bool{}, yield: yield}
			return c.run(ctx)
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(Result{}, fmt.Errorf("convert: %w", err))
		}
	}
}

// errStopped: the caller ended the iteration.
var errStopped = errors.New("stopped")

type conversion struct {
	dst, src *eventlog.Log
	named    []string         // empty for all
	copied   map[string]int64 // the last seq of each copied session
	failed   map[string]bool
	yield    func(Result, error) bool
}

func (c *conversion) run(ctx context.Context) error {
	for info, err := range c.sessions(ctx) {
		if err != nil {
			return err
		}
		line, err := lineage(ctx, c.src, info.ID)
		if err = cmp.Or(info.Err, err); err != nil {
			if err := c.report(ctx, Result{}, &SourceError{info.ID, err}); err != nil {
				return err
			}
			continue
		}
		for _, a := range slices.Backward(line) {
			if err := c.session(ctx, a.Session, a.Fork.Seq); err != nil {
				return err
			}
		}
		if err := c.session(ctx, info.ID, 0); err != nil {
			return err
		}
	}
	return c.tails(ctx)
}

// lineage lists the ancestors of a session, its parent first.
func lineage(ctx context.Context, log *eventlog.Log, session string) (line []eventlog.Ancestor, err error) {
	for a, err := range log.Ancestors(ctx, session) {
		if err != nil {
			return nil, err
		}
		line = append(line, a)
	}
	return line, nil
}

// sessions are the named sessions, or all.
func (c *conversion) sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	if len(c.named) == 0 {
		return c.src.Sessions(ctx)
	}
	return func(yield func(eventlog.SessionInfo, error) bool) {
		for _, id := range c.named {
			if !yield(eventlog.SessionInfo{ID: id}, ctx.Err()) {
				return
			}
		}
	}
}

// session copies a session, unless it was copied as far as a fork needs it.
func (c *conversion) session(ctx context.Context, session string, needed int64) error {
	if copied, done := c.copied[session]; c.failed[session] || done && copied >= needed {
		return nil
	}
	adopted, err := Session(ctx, c.dst, c.src, session)
	c.copied[session] = adopted.Head.Seq
	adopted.Session = session
	return c.report(ctx, adopted, err)
}

// report yields the outcome of a session. It returns the error that ends the
// sequence.
func (c *conversion) report(ctx context.Context, adopted Result, err error) error {
	var source *SourceError
	if errors.As(err, &source) {
		adopted.Session = source.Session
		c.failed[source.Session] = true
	}
	switch {
	case err != nil && (ctx.Err() != nil || source == nil && !errors.Is(err, eventlog.ErrConflict)):
		return err
	case !c.yield(adopted, err):
		return errStopped
	}
	return nil
}

// Session copies one session's own lines into dst, and the blobs they need; its
// parents must be there. Damage of the source is a *SourceError.
func Session(ctx context.Context, dst, src *eventlog.Log, session string) (Result, error) {
	head, err := dst.Head(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return Result{}, fmt.Errorf("convert: %w", ofSession(session, err))
	}
	c := copying{dst: dst, src: src, session: session, existing: head, blobs: map[event.Digest]bool{}}
	adopted, err := adoptHeld(ctx, dst, session, c.events)
	var source *SourceError
	switch {
	case errors.As(err, &source):
		c.cause = source.Cause
	case c.cause == nil && isOfSource(err):
		c.cause = err
	}
	if c.cause != nil {
		return adopted, &SourceError{Session: session, Cause: c.cause}
	}
	if err != nil {
		err = fmt.Errorf("convert: %w", ofSession(session, err))
	}
	return adopted, err
}

// copying yields the lines of one session, twice, and copies their blobs.
type copying struct {
	dst, src *eventlog.Log
	session  string
	existing event.Head // in dst
	blobs    map[event.Digest]bool
	span     eventlog.Span // the second time the same events, although others were appended
	cause    error         // why src could not be read
}

func (c *copying) events(ctx context.Context, yield func(event.Event, error) bool) {
	last := int64(0)
	for e, err := range c.src.Store().Read(ctx, c.session, c.span) {
		c.cause = err
		for _, d := range e.Blobs() {
			if err != nil || c.blobs[d] {
				continue
			}
			c.blobs[d] = true
			if e.Seq > c.existing.Seq || !hasBlob(ctx, c.dst, d) {
				err = CopyBlob(ctx, c.dst, c.src, d)
			}
		}
		if err == nil {
			last = e.Seq
		}
		if !yield(e, err) || err != nil {
			return
		}
	}
	c.span.To = last
}

// isOfSource reports whether an adoption failed because the session does not verify,
// or its parent was not copied far enough.
func isOfSource(err error) bool {
	for _, target := range []error{eventlog.ErrCorrupt, event.ErrVersion, eventlog.ErrNotFound, eventlog.ErrEventNotFound, event.ErrInvalidTree} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// CopyBlob copies a blob, even if dst has it: unless an event there needs it, it may
// not be on disk, as its writer may have been killed. Call it within Hold of dst. A
// failure of src is a *SourceError.
func CopyBlob(ctx context.Context, dst, src *eventlog.Log, d event.Digest) error {
	body, err := src.OpenBlob(ctx, d)
	if errors.Is(err, eventlog.ErrBlobNotFound) && hasBlob(ctx, dst, d) {
		return nil // better than none
	}
	if err != nil {
		return &SourceError{Cause: err}
	}
	defer body.Close()
	source := failureReader{r: body}
	_, err = dst.PutBlob(ctx, &source)
	if source.err != nil {
		return &SourceError{Cause: source.err}
	}
	return err
}

func hasBlob(ctx context.Context, log *eventlog.Log, d event.Digest) bool {
	body, err := log.OpenBlob(ctx, d)
	return err == nil && body.Close() == nil
}

// failureReader remembers the error of a reader.
type failureReader struct {
	r   io.Reader
	err error
}

func (f *failureReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// tails reports the sessions whose last append is damaged: they were copied up to
// there.
func (c *conversion) tails(ctx context.Context) error {
	tails, ok := eventlog.As[eventlog.TailKeeper](c.src.Store())
	if !ok {
		return nil
	}
	for t, err := range tails.TornTails(ctx, "") {
		if err == nil && t.Whole {
			err = &eventlog.CorruptError{Session: t.Session, Path: t.Path, Offset: t.Offset, Cause: errTail}
		}
		_, tried := c.copied[t.Session]
		if err == nil || c.failed[t.Session] || !tried && len(c.named) > 0 && t.Session != "" {
			continue
		}
		if t.Session == "" {
			return err
		}
		adopted := Result{Head: event.Head{Seq: c.copied[t.Session]}}
		if err := c.report(ctx, adopted, &SourceError{t.Session, err}); err != nil {
			return err
		}
	}
	return nil
}

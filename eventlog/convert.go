package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// SourceError is what kept a session from being copied whole that is no fault
// of where it was copied to: its storage is damaged or cannot be read, or that
// of a parent.
type SourceError struct {
	Session string
	Cause   error
}

func (e *SourceError) Error() string { return "convert: " + ofSession(e.Session, e.Cause).Error() }

// Unwrap gives the cause.
func (e *SourceError) Unwrap() error { return e.Cause }

// errBehind is inside a SourceError of a session that was copied.
var errBehind = errors.New("what stands behind its last complete append may hold events, and is not copied")

// Convert copies sessions of src, all of them if none is named, into dst: lines
// and blobs verbatim, parents before their forks, and those of a fork that is
// named with it. What dst has already is passed over. Others may
// append to src meanwhile: each session is copied up to the end of an append,
// everything that was acknowledged before Convert began with it. Convert holds
// the store lock of src, shared, so that nothing is redacted or removed
// meanwhile; the body of a loop over it must not ask src for that.
//
// The sequence yields each session when it is done; a parent comes again when a
// fork that was made meanwhile needs more of it. A session that could not be
// copied whole comes with a *SourceError, or a *ConflictError where dst has
// another history, and the others follow. Any other error ends the sequence.
func Convert(ctx context.Context, dst, src *Log, sessions ...string) iter.Seq2[Adopted, error] {
	return func(yield func(Adopted, error) bool) {
		unlock, err := src.lockStore(ctx, false)
		if err != nil {
			yield(Adopted{}, fmt.Errorf("convert: %w", err))
			return
		}
		defer unlock()
		c := conversion{dst: dst, src: src, named: sessions, copied: map[string]int64{}, failed: map[string]bool{}, yield: yield}
		if err := c.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Adopted{}, fmt.Errorf("convert: %w", err))
		}
	}
}

// errStopped: the caller wants no more.
var errStopped = errors.New("stopped")

type conversion struct {
	dst, src *Log
	named    []string         // empty for all
	copied   map[string]int64 // up to which seq
	failed   map[string]bool
	yield    func(Adopted, error) bool
}

func (c *conversion) run(ctx context.Context) error {
	for info, err := range c.sessions(ctx) {
		if err != nil {
			return err
		}
		line, err := c.src.forkLine(ctx, info.ID)
		if err = cmp.Or(info.Err, err); err != nil {
			if err := c.give(ctx, Adopted{}, &SourceError{info.ID, err}); err != nil {
				return err
			}
			continue
		}
		for i, first := range slices.Backward(line) {
			needs := int64(0) // up to where the fork reads it
			if i > 0 {
				f, _, err := line[i-1].Fork()
				if err != nil {
					return err
				}
				needs = f.Seq
			}
			if err := c.session(ctx, first.SessionID, needs); err != nil {
				return err
			}
		}
	}
	return c.tails(ctx)
}

// sessions are those that were named, or all.
func (c *conversion) sessions(ctx context.Context) iter.Seq2[SessionInfo, error] {
	if len(c.named) == 0 {
		return c.src.Sessions(ctx)
	}
	return func(yield func(SessionInfo, error) bool) {
		for _, id := range c.named {
			if !yield(SessionInfo{ID: id}, ctx.Err()) {
				return
			}
		}
	}
}

// session copies a session that was not copied yet, or not as far as needs.
func (c *conversion) session(ctx context.Context, session string, needs int64) error {
	if copied, done := c.copied[session]; c.failed[session] || done && copied >= needs {
		return nil
	}
	adopted, err := convert(ctx, c.dst, c.src, session)
	c.copied[session] = adopted.Head.Seq
	adopted.Session = session
	return c.give(ctx, adopted, err)
}

// give yields what became of a session; it returns what ends the sequence.
func (c *conversion) give(ctx context.Context, adopted Adopted, err error) error {
	var source *SourceError
	if errors.As(err, &source) {
		adopted.Session = source.Session
		c.failed[source.Session] = true
	}
	switch {
	case err != nil && (ctx.Err() != nil || source == nil && !errors.Is(err, ErrConflict)):
		return err
	case !c.yield(adopted, err):
		return errStopped
	}
	return nil
}

// convert copies a session's lines, and before each the blobs that it needs.
func convert(ctx context.Context, dst, src *Log, session string) (Adopted, error) {
	blobs := map[Digest]bool{}
	var cause error
	var span Span // the second time the same events, although others came behind
	head, err := dst.Head(ctx, session)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Adopted{}, fmt.Errorf("convert: %w", ofSession(session, err))
	}
	adopted, err := dst.adopt(ctx, session, func(yield func(Event, error) bool) {
		last := int64(0)
		for e, err := range src.store.Read(ctx, session, span) {
			cause = err
			for _, d := range e.Blobs() {
				if err != nil || blobs[d] {
					continue
				}
				blobs[d] = true
				if e.Seq > head.Seq || dst.checkBlob(ctx, d) != nil {
					err = copyBlob(ctx, dst, src, d)
				}
			}
			if err == nil {
				last = e.Seq
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		span.To = last
	})
	var source *SourceError
	switch {
	case errors.As(err, &source):
		cause = source.Cause
	case cause == nil && isOfSource(err):
		cause = err
	}
	if cause != nil {
		return adopted, &SourceError{Session: session, Cause: cause}
	}
	if err != nil {
		err = fmt.Errorf("convert: %w", ofSession(session, err))
	}
	return adopted, err
}

// isOfSource reports whether an adoption failed since the session does not
// verify, or its parent was not copied as far as it is needed.
func isOfSource(err error) bool {
	for _, target := range []error{ErrCorrupt, ErrVersion, ErrNotFound, ErrEventNotFound, ErrInvalidTree} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// copyBlob copies a blob, also where dst has it: unless an event there needs it,
// it may not be on disk, as its writer may have been killed. Adopt holds dst's
// store lock. What fails in src is a *SourceError.
func copyBlob(ctx context.Context, dst, src *Log, d Digest) error {
	body, err := src.OpenBlob(ctx, d)
	if errors.Is(err, ErrBlobNotFound) && dst.checkBlob(ctx, d) == nil {
		return nil // better than none
	}
	if err != nil {
		return &SourceError{Cause: err}
	}
	defer body.Close()
	reading := failing{r: body}
	_, err = dst.putBlob(ctx, &reading)
	if reading.err != nil {
		return &SourceError{Cause: reading.err}
	}
	return err
}

// failing remembers what reading failed with.
type failing struct {
	r   io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// tails reports the sessions whose last append is damaged: they were copied up
// to there.
func (c *conversion) tails(ctx context.Context) error {
	for t, err := range c.src.TornTails(ctx) {
		if err == nil && t.Whole {
			err = &CorruptError{Session: t.Session, Path: t.Path, Offset: t.Offset, Cause: errBehind}
		}
		_, tried := c.copied[t.Session]
		if err == nil || c.failed[t.Session] || !tried && len(c.named) > 0 && t.Session != "" {
			continue
		}
		if t.Session == "" {
			return err
		}
		if err := c.give(ctx, Adopted{Head: Head{Seq: c.copied[t.Session]}}, &SourceError{t.Session, err}); err != nil {
			return err
		}
	}
	return nil
}

// Package transfer copies sessions between logs (Convert, Backup) and between a log and
// a stream of lines (Export, Import). Lines, hashes and blobs do not change. Everything
// is verified before it is stored.
//
//	for result, err := range transfer.Convert(ctx, dst, src) {
//		...
//	}
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
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/internal/adopt"
)

// SourceError reports that the source session, or one of its parents, is damaged,
// unreadable, or shorter than the session of the destination. The destination is fine.
// Repair the source.
type SourceError struct {
	Session string
	Cause   error
}

func (e *SourceError) Error() string { return "convert: " + ofSession(e.Session, e.Cause).Error() }

// Unwrap is the cause.
func (e *SourceError) Unwrap() error { return e.Cause }

// errTail is the cause in a SourceError of a session that was copied up to its damage.
var errTail = errors.New("the bytes after the last complete append may hold events, and are not copied")

// Options configure Convert and Import.
type Options struct {
	// Sessions are the sessions that Convert copies; empty for all.
	Sessions []string
	// ApplyRedactions redacts the events of the log that are redacted in the source, with what
	// goes along.
	ApplyRedactions bool
	// EvenErased stores copies (fork.Copy) of events that the log has erased; else they are a
	// *RedactionError.
	EvenErased bool
	// Again makes Import store sessions that were removed from the log (erase.Remove), too.
	// Convert always stores them.
	Again bool
}

// Convert copies sessions of src into dst. It copies lines and blobs verbatim, the parents of a fork before the fork, and
// the parents of a named fork too. It skips events that dst has already. An event that is
// redacted in dst stays redacted, and its blobs are not copied. An event that is redacted in src, and
// that dst has in full, is a *RedactionError, and nothing of its session is copied, unless
// Options.ApplyRedactions is true: a copy of a log cannot erase in it unasked. So is a copy
// (fork.Copy) of an event that dst has erased, unless Options.EvenErased is true. Other programs
// may append to src at the same time: Convert copies each session up to the end of an
// append, with all events that were acknowledged before it read the session. It holds
// the store lock of src, shared. A loop over Convert must not redact or remove in src.
//
// If no session is named, Convert copies first the session convlog:store, the notes about removed
// sessions and holds. If dst has notes of its own, it gets the notes that it lacks. So an import
// into dst leaves out the removed sessions too. Convert copies a session that was removed from dst.
//
// Convert yields a Result for each session. It yields a parent again if a new fork
// needs more of its events. If a session could not be copied whole, its Result comes
// with a *SourceError, with a *RedactionError, with a *eventlog.ConflictError if dst has
// another history, or with a *erase.HeldError if src has redacted events of a session that is on
// hold in dst. A *eventlog.CorruptError without a *SourceError reports that the session is damaged
// in dst: Convert does not mend it. The other sessions follow. Every other error ends the sequence. Convert
// uses the first Options only.
func Convert(ctx context.Context, dst, src *eventlog.Log, opts ...Options) iter.Seq2[Result, error] {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	return func(yield func(Result, error) bool) {
		err := src.Hold(ctx, func(ctx context.Context) error {
			c := conversion{dst: dst, src: src, opts: o, copied: map[string]int64{}, failed: map[string]bool{}, yield: yield}
			if !o.EvenErased {
				c.originals = newOriginals(dst)
			}
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
	opts     Options
	copied   map[string]int64 // the newest seq of each copied session
	failed   map[string]bool
	yield    func(Result, error) bool

	originals *originals
}

func (c *conversion) run(ctx context.Context) error {
	if len(c.opts.Sessions) == 0 {
		if err := c.notes(ctx); err != nil {
			return err
		}
	}
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

// notes copies the notes of the store.
func (c *conversion) notes(ctx context.Context) error {
	head, err := c.src.Head(ctx, engine.StoreSession)
	if errors.Is(err, eventlog.ErrNotFound) {
		return nil
	}
	adopted, err := convertSession(ctx, c.dst, c.src, engine.StoreSession, func(string) bool { return false }, nil)
	switch {
	case errors.Is(err, errBehind): // dst has the notes of src, and later ones of its own
		err = nil
	case errors.Is(err, eventlog.ErrConflict):
		adopted, err = c.mergeNotes(ctx, head.Seq)
	}
	c.copied[engine.StoreSession] = head.Seq
	adopted.Session = engine.StoreSession
	return c.report(ctx, adopted, err)
}

// mergeNotes adds the notes of src to the notes of dst.
func (c *conversion) mergeNotes(ctx context.Context, read int64) (Result, error) {
	before, err := c.dst.Head(ctx, engine.StoreSession)
	if err == nil {
		err = storenotes.Copy(ctx, c.dst, c.src)
	}
	if err != nil {
		return Result{}, err
	}
	after, err := c.dst.Head(ctx, engine.StoreSession)
	return Result{Read: read, Stored: after.Seq - before.Seq, Head: after}, err
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

// sessions yields the named sessions, or all sessions.
func (c *conversion) sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	if len(c.opts.Sessions) == 0 {
		return c.src.Sessions(ctx)
	}
	return func(yield func(eventlog.SessionInfo, error) bool) {
		for _, id := range c.opts.Sessions {
			if !yield(eventlog.SessionInfo{ID: id}, ctx.Err()) {
				return
			}
		}
	}
}

// session copies a session, unless it was copied up to seq needed.
func (c *conversion) session(ctx context.Context, session string, needed int64) error {
	if copied, done := c.copied[session]; c.failed[session] || done && copied >= needed {
		return nil
	}
	var follows func(fork string) bool
	if c.opts.ApplyRedactions {
		follows = func(fork string) bool { return c.follows(ctx, fork) }
	}
	adopted, err := convertSession(ctx, c.dst, c.src, session, follows, c.originals)
	c.copied[session] = adopted.Head.Seq
	adopted.Session = session
	return c.report(ctx, adopted, err)
}

// follows reports whether the conversion copies a session later.
func (c *conversion) follows(ctx context.Context, session string) bool {
	if _, done := c.copied[session]; done || len(c.opts.Sessions) > 0 && !slices.Contains(c.opts.Sessions, session) {
		return false
	}
	_, err := c.src.Head(ctx, session)
	return err == nil
}

// report yields the outcome of a session. It returns the error that ends the
// sequence.
func (c *conversion) report(ctx context.Context, adopted Result, err error) error {
	var source *SourceError
	var order *RedactionError
	var held *erase.HeldError
	var corrupt *eventlog.CorruptError
	known := errors.As(err, &order) || errors.As(err, &held) || errors.Is(err, eventlog.ErrConflict) ||
		errors.As(err, &corrupt) && corrupt.Session != "" && corrupt.Session == adopted.Session
	if errors.As(err, &source) {
		adopted.Session = source.Session
		c.failed[source.Session] = true
	}
	switch {
	case err != nil && (ctx.Err() != nil || source == nil && !known):
		return err
	case !c.yield(adopted, err):
		return errStopped
	}
	return nil
}

// Session copies the own lines of one session into dst, and the blobs that they need.
// dst must have the parents. Damage of the source is a *SourceError. Redactions of src that dst lacks
// are a *RedactionError.
func Session(ctx context.Context, dst, src *eventlog.Log, session string) (Result, error) {
	return convertSession(ctx, dst, src, session, nil, newOriginals(dst))
}

// convertSession is Session. follows reports whether a session is copied later; nil does not obey
// redactions.
func convertSession(ctx context.Context, dst, src *eventlog.Log, session string, follows func(session string) bool, o *originals) (Result, error) {
	if err := engine.Of(src).Usable(ctx, session); err != nil {
		return Result{}, err
	}
	head, err := dst.Head(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrNotFound) {
		return Result{}, destinationError(session, err)
	}
	c := sessionCopy{src: src, bodies: newBodies(dst, session, head, o, func(ctx context.Context, d event.Digest) error { return CopyBlob(ctx, dst, src, d) })}
	adopted, damage, err := adoptHeld(ctx, dst, session, adopt.Options{}, follows, c.events, o)
	var source *SourceError
	switch {
	case errors.As(err, &source):
		c.cause = source.Cause
	case c.cause == nil && damage != nil && (err == nil || isOfSource(err)):
		return adopted, destinationError(session, damage)
	case c.cause == nil && isOfSource(err):
		c.cause = err
	}
	if c.cause != nil {
		return adopted, &SourceError{Session: session, Cause: c.cause}
	}
	if err != nil {
		return adopted, fmt.Errorf("convert: %w", ofSession(session, err))
	}
	if adopted.Head.Seq > c.span.To {
		err = behind(ctx, dst, session, c.span.To)
	}
	return adopted, err
}

// destinationError is the error of a session that cannot be read in dst.
func destinationError(session string, err error) error {
	phrase := "convert"
	if errors.Is(err, eventlog.ErrCorrupt) {
		phrase = "convert: the destination is damaged"
	}
	return fmt.Errorf("%s: %w", phrase, ofSession(session, err))
}

// behind is the error of a source that ends before the session of dst. A redaction in dst
// alone makes no difference.
func behind(ctx context.Context, dst *eventlog.Log, session string, last int64) error {
	for e, err := range dst.Read(ctx, session, eventlog.From(last+1)) {
		if err != nil {
			return destinationError(session, err)
		}
		if e.Type != event.Redacted {
			return &SourceError{session, fmt.Errorf("%w: it ends at event %d, and the destination has event %d: it has lost events, or others wrote to the destination", errBehind, last, e.Seq)}
		}
	}
	return nil
}

// errBehind is the cause in a SourceError of a session with events that the source lacks.
var errBehind = errors.New("the source is behind the destination")

// sessionCopy is the copy of one session: it yields the lines twice, and copies their
// blobs.
type sessionCopy struct {
	src *eventlog.Log
	*bodies
	span  eventlog.Span // the events of the first iteration, for the second
	cause error         // the error of src
}

func (c *sessionCopy) events(ctx context.Context, yield func(event.Event, error) bool) {
	last := int64(0)
	for e, err := range c.src.Store().Read(ctx, c.session, c.span) {
		if c.cause = err; err == nil {
			err = c.copyOf(ctx, &e)
			last = e.Seq
		}
		if !yield(e, err) || err != nil {
			return
		}
	}
	c.span.To = last
}

// isOfSource reports whether the session itself is the reason of a failed adoption: it
// does not verify, or dst has too few events of its parent.
func isOfSource(err error) bool {
	for _, target := range []error{eventlog.ErrCorrupt, event.ErrVersion, eventlog.ErrNotFound, eventlog.ErrEventNotFound, event.ErrInvalidTree} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// CopyBlob copies a blob from src to dst. Call it inside Hold of dst. It copies the blob
// even if dst has it: a killed writer may have left the blob without a sync. A failure
// of src is a *SourceError.
func CopyBlob(ctx context.Context, dst, src *eventlog.Log, d event.Digest) error {
	body, err := src.OpenBlob(ctx, d)
	if errors.Is(err, eventlog.ErrBlobNotFound) && hasBlob(ctx, dst, d) {
		return nil // keep the blob of dst
	}
	if err != nil {
		return &SourceError{Cause: err}
	}
	defer body.Close()
	source := failureReader{r: body}
	_, err = engine.Of(dst).PutBlob(ctx, &source)
	if source.err != nil {
		return &SourceError{Cause: source.err}
	}
	return err
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

// tails reports each session with a damaged last append: it was copied up to the damage.
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
		if err == nil || c.failed[t.Session] || !tried && len(c.opts.Sessions) > 0 && t.Session != "" {
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

package flow

import (
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
)

// Errors of Send and Resume, and of a runner that stops. The turn stays open after each of them.
var (
	// ErrStart: the arguments or the agent contradict each other or the session. Nothing
	// ran; the error says how to correct it.
	ErrStart = errors.New("cannot start")
	// ErrAlreadyRunning: another runner has the session, and is alive. Post the input to
	// it, wait, or call TakeOver.
	ErrAlreadyRunning = errors.New("another runner has the session")
	// ErrOvertaken: another runner claimed the session, or another writer moved its head
	// or appended an event that a running turn does not expect. The error says which.
	// The other runner continues.
	ErrOvertaken = errors.New("another writer took over the session")
	// ErrConsumed: a turn was resumed from this hibernation already. Call Resume without
	// the snapshot, or fork at the snapshot.
	ErrConsumed = errors.New("the hibernation was resumed already")
)

// Errors of a turn function. The turn stays open after each of them, except ErrAborted
// and ErrLimit.
var (
	// ErrNestedEffect: an effect began, or the turn was changed, inside an effect or while one
	// was running. Use Batch for several effects at a time.
	ErrNestedEffect = errors.New("an effect cannot run effects or change the turn")
	// ErrNeedsReconcile: an effect began and has no readable result, and its class does not
	// allow to run it again. Record its outcome with Reconcile or logtool agent reconcile.
	// If the result was erased, abort the turn.
	ErrNeedsReconcile = errors.New("the outcome of an effect is unknown: record it with Reconcile or logtool agent reconcile")
	// ErrAborted: the turn was aborted, and has ended. A turn function returns the error.
	ErrAborted = errors.New("the turn was aborted")
	// ErrLimit: the turn reached a limit, and ends with the stop reason limit. Return
	// the error, or raise Options.Limits.
	ErrLimit = errors.New("the turn reached a limit")
	// ErrChildLimit: the turn has as many children, or the child as many sessions above
	// it, as the limits allow. Do the work in the turn, or raise Limits.Children or
	// Limits.Depth.
	ErrChildLimit = errors.New("the limit of children is reached")
	// ErrNotPortable: an argument, a result or a state cannot be encoded as JSON. Use
	// another type.
	ErrNotPortable = errors.New("the value cannot be encoded as JSON")
)

// errNoReview: an unsafe_once effect has no review. The turn stays open.
var errNoReview = fmt.Errorf("%w: an effect of class unsafe_once needs a review", ErrStart)

// errConcurrentEffect: a second effect began while one was running, and not inside it.
var errConcurrentEffect = fmt.Errorf("%w: another effect is running: use Batch for several effects at a time", ErrNestedEffect)

// Errors of answers, and of effects and waits that an answer ended.
var (
	// ErrDenied: a person denied the effect, its review lapsed, or a Hook refused the
	// call. Continue without the effect.
	ErrDenied = errors.New("denied")
	// ErrExpired: the answer came too late, or the wait ended without a value. Ask
	// again, or continue without the value.
	ErrExpired = errors.New("expired")
	// ErrCanceled: the wait was canceled. Continue without the value.
	ErrCanceled = errors.New("canceled")
	// ErrMismatch: the answer names another effect or other arguments than its review.
	// Load the review again.
	ErrMismatch = errors.New("the answer does not belong to the review")
	// ErrAnswered: the review or wait has an answer already. The first answer counts.
	ErrAnswered = errors.New("answered already")
	// ErrNotOpen: the session has no such review, wait or effect, or an awaited wait
	// belongs to another turn. Check the session and the id.
	ErrNotOpen = errors.New("not open")
)

// Errors of tokens. A token of a newer version is a *event.VersionError.
var (
	// ErrToken: the text is no token, or is not signed with the key. Check that it is
	// whole. A token of a newer version is an event.VersionError.
	ErrToken = errors.New("invalid token")
)

// Hibernated reports that a turn waits for answers, for a time, or to be started again.
// Answer with Decide or Resolve.
type Hibernated struct {
	// Ref is the snapshot of the hibernation.
	Ref Ref
	// Turn is the turn, and Cursor the place where it continues.
	Turn   ulid.ULID
	Cursor event.Cursor
	// Reviews and Waits are the open reviews and waits of the turn. Reviews of its children
	// have a SessionID.
	Reviews []projection.OpenApproval
	Waits   []projection.OpenWait
	// Until is when the turn continues without an answer; zero is never.
	Until time.Time
	// Queued reports that the input of the call is stored, and begins its turn after this
	// one.
	Queued bool

	children []*Hibernated // of the children that hibernate
	sessions []string      // of these children and the children below
	ready    bool          // a child can continue
}

func (h *Hibernated) Error() string {
	what := h.Cursor.Kind
	switch {
	case len(h.Reviews) == 1:
		what = fmt.Sprintf("review %q", h.Reviews[0].InterruptID)
		if child := h.Reviews[0].SessionID; child != "" {
			what += fmt.Sprintf(" of child session %q", child)
		}
	case len(h.Reviews) > 1:
		what = fmt.Sprintf("%d reviews", len(h.Reviews))
	case len(h.Waits) > 0:
		what = fmt.Sprintf("wait %q", h.Waits[0].WaitID)
	}
	return fmt.Sprintf("session %q hibernates: %s", h.Ref.Session, what)
}

// DivergenceError reports that a turn function differs from its records, and at which
// effect. Nothing ran, and the turn stays open. Use Turn.Patched, Options.Resume, or the
// older code.
type DivergenceError struct {
	Session string
	Turn    ulid.ULID
	// Seq is the event of the record.
	Seq int64
	// Ordinal is the place in the turn, as in event.EffectIntent.
	Ordinal string
	// Member is the difference: version, kind, name, arguments, batch, review, result or end.
	Member string
	// Recorded and Got are the two values. Arguments and results are content of the session.
	Recorded, Got string
	// RecordedVersion is the version of the code that began the turn.
	RecordedVersion string
}

func (e *DivergenceError) Error() string {
	return fmt.Sprintf("session %q: event %d: effect %s of the turn: %s is %q in the record and %q in the code",
		e.Session, e.Seq, e.Ordinal, e.Member, e.Recorded, e.Got)
}

// EffectError is the error that an effect ended with, as it was recorded. Handle it, or
// return it: the turn fails.
type EffectError struct {
	Name string
	// Code names the kind of the error; see the codes in docs/FORMAT.md.
	Code    string
	Message string
}

func (e *EffectError) Error() string { return fmt.Sprintf("effect %q: %s", e.Name, e.Message) }

// Is reports whether Code is the code of target.
func (e *EffectError) Is(target error) bool {
	switch e.Code {
	case codeDenied, codeRefused:
		return target == ErrDenied
	case codeExpired:
		return target == ErrExpired
	case codeCanceled:
		return target == ErrCanceled
	}
	return false
}

// The codes of recorded errors.
const (
	codeFailed   = "failed"
	codePanic    = "panic"
	codeTimeout  = "timeout"
	codeDenied   = "denied"
	codeExpired  = "expired"
	codeCanceled = "canceled"
	codeAborted  = "aborted"
	codeStopped  = "stopped" // Serve gave up
	codeRefused  = "refused" // by a hook
	codeHook     = "hook"    // a hook failed
)

// TurnError reports that a turn failed. The session is as it was before the turn. Send the
// input again, with the same id, to try the turn again.
type TurnError struct {
	Session string
	Turn    ulid.ULID
	Code    string
	Err     error
}

func (e *TurnError) Error() string {
	return fmt.Sprintf("session %q: turn %s failed: %v", e.Session, e.Turn, e.Err)
}

func (e *TurnError) Unwrap() error { return e.Err }

// errAgain ends an execution that made a decision from an outdated state. The turn is
// run again.
var errAgain = errors.New("the turn is run again")

// leaveOpen reports whether a turn stays open after an error of its function.
func leaveOpen(err error) bool {
	var diverged *DivergenceError
	if errors.As(err, &diverged) || errors.As(err, new(*HomeError)) {
		return true
	}
	for _, target := range []error{ErrStart, ErrOvertaken, ErrNestedEffect, ErrNeedsReconcile, eventlog.ErrClosed, eventlog.ErrUnknownOutcome, eventlog.ErrCorrupt} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// childError is the error of a child that leaves its turn open.
type childError struct {
	session string
	head    event.Head // the head that the runner of the child left; zero if it had no runner
	err     error
}

func (e *childError) Error() string { return fmt.Sprintf("child session %q: %v", e.session, e.err) }

func (e *childError) Unwrap() error { return e.err }

package flow

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/sink"
)

// Agent is a durable agent with a custom state of type S. Its fields do not change after
// the first use. Its methods may be called concurrently, also in several processes over
// one store.
type Agent[S any] struct {
	// Name names the agent in the log. Its custom state has the same name.
	Name string
	Log  *eventlog.Log
	// Turn takes one input to an answer. After an interruption it is run again from its
	// top: finished effects return their recorded results. Between effects it may depend on t
	// and on results of effects only, not on clocks, random numbers or other state. An error
	// or a panic fails the turn; the error of an ended ctx leaves it open.
	Turn func(ctx context.Context, t *Turn[S]) error
	// Version names the code of Turn. It is recorded with each turn.
	Version string
	// StateVersion and Migrations belong to S; see projection.Typed.
	StateVersion int
	Migrations   projection.Migrations
	Options      Options
}

// Options configure an Agent. The zero value is ready for use.
type Options struct {
	// Snapshots configure the snapshots at the end of turns and at hibernations. The zero
	// value makes one each time, with a body when the log has grown enough.
	Snapshots projection.LiveOptions
	// Views are further projections that are kept up to date and in the snapshots.
	Views []projection.Part
	// Render configures the history that models get.
	Render projection.RenderOptions
	Limits Limits
	// Retry says how often a call of a model is tried. If it is zero, 4 attempts, after a
	// RetryError that is not permanent and after a time-out of the network. Tools and other
	// effects have their own.
	Retry Retry
	// Compact is the size above which Chat compacts the history; 100,000 tokens if zero.
	// KeepTurns is the number of last turns that stay, 2 if 0.
	Compact   projection.HistorySize
	KeepTurns int
	// InProcess is the longest wait without a hibernation; 1 min if 0. If negative, every
	// wait hibernates.
	InProcess time.Duration
	// Resume is called where a turn and its records differ, and before a turn of another
	// Version continues. If it returns nil, the turn continues with the record. Without
	// Resume, a turn of another version continues, and a difference ends the run.
	Resume func(d *DivergenceError) error
	// Key signs tokens; at least 32 bytes. FromToken then accepts signed tokens only.
	Key []byte
	// Runner names this process in claims; host name and process id if empty.
	Runner string
	// Logger gets a line when a turn begins, hibernates or ends, and when Serve meets an
	// error in a session; nil logs nothing.
	Logger *slog.Logger
	// Sinks get the op tree of the session after each child and at the end of each invocation,
	// and its costs at the end. A sink that fails is a warning; see sink.Sinks. Children
	// without Sinks use the Sinks of their parent. nil does nothing.
	Sinks *sink.Sinks
	// Telemetry gets a span for each turn, effect and snapshot, and metrics.
	Telemetry Telemetry
	// Now is the clock, and NewID makes ids; time.Now and random UUIDs if nil.
	Now   func() time.Time
	NewID func() string
}

// Limits end a turn with the stop reason limit. They are checked before each call of a
// model and each effect. 0 is no limit.
type Limits struct {
	// Calls is the number of answers of models.
	Calls int
	// Tokens is the number of tokens of all kinds.
	Tokens int64
	Cost   event.Cost
	// Time is the time that the turn runs, without hibernations.
	Time time.Duration
	// Children is the number of children that the turn may run, 64 if 0. Depth is the number
	// of sessions above a child, 8 if 0. Both refuse the child with ErrChildLimit, and do not
	// end the turn.
	Children, Depth int
}

// Start claims a session and runs its turns until ctx ends or the connection is closed.
// It first continues the open turn, if there is one. At most one runner has a session.
//
// The errors are ErrAlreadyRunning; *Hibernated if the open turn waits for answers that
// StartOptions.Answers do not give (nothing is appended then); ErrStart; ErrConsumed; the
// errors of tokens and answers; and the errors of the log.
func (a *Agent[S]) Start(ctx context.Context, from Start, opts ...StartOptions) (*Conn[S], error) {
	c, err := a.connect(ctx, from, opts...)
	if err != nil {
		return nil, err
	}
	c.begin(ctx)
	return c, nil
}

// connect claims a session. The connection does not run turns before its begin.
func (a *Agent[S]) connect(ctx context.Context, from Start, opts ...StartOptions) (*Conn[S], error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	var o StartOptions
	if len(opts) > 0 {
		o = opts[0]
	}
	s.checkpoint, s.takeOver = o.Checkpoint, o.TakeOver
	r, resumed, err := s.open(ctx, from, o)
	if err != nil {
		return nil, err
	}
	return &Conn[S]{r: r, agent: a, resumed: resumed}, nil
}

// Run starts a session, sends inputs, waits for the ends of their turns, and returns the
// output. If a turn hibernates, the error is a *Hibernated, and Output has its state.
func (a *Agent[S]) Run(ctx context.Context, from Start, in ...Input) (Output[S], error) {
	c, err := a.connect(ctx, from)
	if err != nil {
		return Output[S]{}, err
	}
	c.r.out.close()
	in = c.r.unknown(in...)
	c.begin(ctx)
	for _, x := range in {
		if err = c.Send(x); err != nil {
			break
		}
	}
	closed := c.Close()
	out, failed := c.Output(ctx)
	return out, cmp.Or(err, failed, closed)
}

// settings checks the agent and fills in defaults.
func (a *Agent[S]) settings() (*settings, error) {
	if a.Log == nil || a.Turn == nil {
		return nil, fmt.Errorf("%w: the agent needs Log and Turn", ErrStart)
	}
	if n := len(a.Options.Key); n > 0 && n < minKey {
		return nil, fmt.Errorf("%w: Options.Key has %d bytes, and at least %d are needed", ErrStart, n, minKey)
	}
	s := &settings{name: a.Name, version: a.Version, stateVersion: a.StateVersion, log: a.Log, options: a.Options.withDefaults(),
		run: func(ctx context.Context, t *turn) error { return a.Turn(ctx, &Turn[S]{t}) },
		migrate: func(c projection.CustomState) ([]byte, error) {
			state, err := projection.Typed[S](c, a.StateVersion, a.Migrations)
			if err != nil || c.Version == a.StateVersion || isNull(c.Raw()) {
				return c.Raw(), err
			}
			return encode(state)
		}}
	s.set = s.newSet()
	var err error
	if s.telemetry, err = newTelemetry(s.options.Telemetry); err != nil {
		return nil, fmt.Errorf("%w: telemetry: %w", ErrStart, err)
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.InProcess == 0 {
		o.InProcess = time.Minute
	}
	o.InProcess = max(o.InProcess, 0)
	o.Limits.Children = cmp.Or(o.Limits.Children, defaultChildren)
	o.Limits.Depth = cmp.Or(o.Limits.Depth, defaultDepth)
	if o.Retry.Attempts == 0 {
		o.Retry.Attempts = 4
		if o.Retry.If == nil {
			o.Retry.If = isTransient
		}
	}
	if o.Compact == (projection.HistorySize{}) {
		o.Compact.Tokens = defaultCompactTokens
	}
	if o.KeepTurns <= 0 {
		o.KeepTurns = defaultKeepTurns
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Runner == "" {
		host, _ := os.Hostname() // an empty name is fine
		o.Runner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	o.Snapshots.Now, o.Snapshots.NewID, o.Snapshots.At, o.Snapshots.KeepTail = o.Now, o.NewID, 0, true
	return o
}

// newSet is the projections that a runner keeps up to date.
func (s *settings) newSet() projection.Set {
	parts := append(projection.Session().Parts, inputs())
	return projection.Of("flow:session", append(parts, s.options.Views...)...)
}

package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

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
	// Snapshots configure the snapshots. The zero value makes one at the end of each turn and
	// at each hibernation, with a body when the log has grown enough. A Policy is asked once at
	// each of these moments, when all tool calls of an answer have a result
	// (projection.ToolIterationEnd), and when the runner has nothing more to do and its last
	// turn did not fail (projection.InvocationEnd; an unchanged state gets no second snapshot).
	Snapshots projection.LiveOptions
	// Views are further projections that are kept up to date and in the snapshots.
	Views []projection.Part
	// Render configures the history that models get.
	Render projection.RenderOptions
	Limits Limits
	// Retry says how often a call of a model is tried. If it is zero, 4 attempts, after a
	// ModelError that is not permanent and after a time-out of the network. Tools and other
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
	// Key signs tokens; at least 32 bytes. ParseToken with it accepts signed tokens only.
	Key []byte
	// Runner names this process in claims; host name and process id if empty.
	Runner string
	// Checkpoint says where turns hibernate by themselves. It is not recorded.
	Checkpoint Checkpoint
	// Concurrency is the number of sessions that Serve runs at a time; 16 if 0. Poll is how
	// often Serve checks timers, 1 s if 0. If the store is no eventlog.Notifier, Serve checks
	// all sessions then.
	Concurrency int
	Poll        time.Duration
	Observe     Observe
	// Hooks are called before and after calls of models and tools.
	Hooks []Hook
	// Now is the clock, and NewID makes ids; time.Now and random UUIDs if nil.
	Now   func() time.Time
	NewID func() string
}

// Observe holds the logger, the sinks and the telemetry of an agent.
type Observe struct {
	// Logger gets a line when a turn begins, hibernates or ends, and when Serve meets an
	// error in a session. nil is slog.Default() for warnings, and nothing for the rest.
	Logger *slog.Logger
	// Sinks get the op tree of the session after each child and at the end of each run, and
	// its costs at the end. A sink that fails is a warning; see sink.Sinks. Children
	// without Sinks use the Sinks of their parent. nil does nothing.
	Sinks *sink.Sinks
	// Traces gets spans and Metrics metrics; nil are the global providers of OpenTelemetry,
	// which drop everything unless the program sets them.
	//
	// Each execution of a turn is a span "invoke_agent NAME", each attempt of an effect a
	// span below it: "chat MODEL", "execute_tool NAME" or "effect NAME", and each snapshot a
	// span "snapshot". Names and attributes follow the semantic conventions for generative
	// AI; attributes that they lack begin with "convlog.". No span has the text of a message,
	// arguments or results.
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider
}

// Limits end a turn with the stop reason limit. They are checked before each call of a
// model and each effect. 0 is no limit.
type Limits struct {
	// Calls is the number of answers of models.
	Calls int
	// Tokens is the number of tokens of all kinds.
	Tokens int64
	Cost   event.Cost
	// ToolResult is the number of bytes of text in the result of a tool. The model gets the
	// beginning of a longer one and a mark, and the whole text is an artifact of the kind
	// tool_result. It does not end the turn.
	ToolResult int
	// Time is the time that the turn runs, without hibernations.
	Time time.Duration
	// Children is the number of children that the turn may run, 64 if 0. Depth is the number
	// of sessions above a child, 8 if 0. Both refuse the child with ErrChildLimit, and do not
	// end the turn.
	Children, Depth int
}

// Send stores an input, whatever the session does, and returns a handle of it. If nobody has
// the session, Send starts a runner here, which ends when the session has nothing to do. A
// missing session begins. An empty id of the session is a new one. The end of ctx stops the
// runner, and the turn stays open; see Handle.Detach.
//
// An input that the session has is not stored again. If its turn failed, the turn is tried
// again, with the same id, the finished effects and the same keys; effects of the last batch
// that failed run again. The error is an *InputError if that is not possible, ErrStart if the
// open turn belongs to another agent, *HomeError if it belongs to another store and the input is
// not PostOnly, or an error of the log: the input is not stored then.
func (a *Agent[S]) Send(ctx context.Context, session string, in Input) (*Handle[S], error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	s, err := a.settings(!in.PostOnly)
	if err != nil {
		return nil, err
	}
	in.ID = cmp.Or(in.ID, s.options.NewID())
	return a.open(ctx, s, &start{session: cmp.Or(session, s.options.NewID()), in: &in})
}

// Run is Send and Handle.Wait. It returns after its runner has ended. Without Input.ID each call
// is a new input, which does its work again: give inputs that a program repeats an ID.
func (a *Agent[S]) Run(ctx context.Context, session string, in Input) (Output[S], error) {
	h, err := a.Send(ctx, session, in)
	if err != nil {
		return Output[S]{Content: Content[S]{Session: session}}, err
	}
	if h.run != nil {
		<-h.run.done
	}
	return h.Wait(ctx)
}

// Resume continues the open turn of a session, or its waiting inputs. If at names a snapshot,
// it continues after the snapshot; the later events leave the path. The snapshot of a
// hibernation can be continued once (ErrConsumed).
//
// The errors are ErrAlreadyRunning; *Hibernated if the open turn waits for answers (nothing is
// appended then); *HomeError in a copy of the store; ErrStart; ErrConsumed; and the errors of
// the log.
func (a *Agent[S]) Resume(ctx context.Context, at Ref) (*Handle[S], error) {
	s, err := a.settings(true)
	if err != nil {
		return nil, err
	}
	if at.Wait != "" {
		return nil, fmt.Errorf("%w: the reference names wait %q of session %q: answer it with Resolve", ErrStart, at.Wait, at.Session)
	}
	return a.open(ctx, s, &start{session: at.Session, snapshot: at.Snapshot})
}

// Begin begins a session with the content of another conversation. An empty Content.Session
// gives it a new id. A session of that id must not exist.
func (a *Agent[S]) Begin(ctx context.Context, c Content[S]) (session string, err error) {
	s, err := a.settings(false)
	if err != nil {
		return "", err
	}
	session = cmp.Or(c.Session, s.options.NewID())
	_, err = s.open(ctx, &start{session: session, fresh: true, content: c.events})
	return session, err
}

func (a *Agent[S]) open(ctx context.Context, s *settings, from *start) (*Handle[S], error) {
	o, err := s.open(ctx, from)
	if err != nil {
		return nil, err
	}
	return a.handle(ctx, s, from, o), nil
}

var errNoName = errors.New("the agent needs Name, Log and Turn")

// settings checks the agent and fills in defaults. runs reports that turns run.
func (a *Agent[S]) settings(runs bool) (*settings, error) {
	if a.Name == "" || a.Log == nil || runs && a.Turn == nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, errNoName)
	}
	if n := len(a.Options.Key); n > 0 && n < minKey {
		return nil, fmt.Errorf("%w: Options.Key has %d bytes, and at least %d are needed", ErrStart, n, minKey)
	}
	if err := hooks(a.Options.Hooks).check(); err != nil {
		return nil, err
	}
	s := &settings{agent: a, name: a.Name, version: a.Version, stateVersion: a.StateVersion, log: a.Log, options: a.Options.withDefaults(),
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
	if s.telemetry, err = newTelemetry(s.options.Observe); err != nil {
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
	if o.Concurrency <= 0 {
		o.Concurrency = 16
	}
	if o.Poll <= 0 {
		o.Poll = time.Second
	}
	if o.Observe.Logger == nil {
		o.Observe.Logger = slog.New(warnings{slog.Default().Handler()})
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
	parts := append(projection.Session().Parts, inputs(), turnsOfInputs())
	return projection.Of("flow:session", append(parts, s.options.Views...)...)
}

package flow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/flow/internal/raw"
)

// Effect describes work outside the log. Its intent is in the log before it runs, and its
// result is durable after. A loss of power may lose the intent of a pure or idempotent effect
// without a review.
type Effect struct {
	// Name names the effect in the log.
	Name string
	// Arguments are recorded with the effect. They must encode to the same JSON whenever
	// the turn is run.
	Arguments any
	// Class decides whether the effect runs again if it began and has no result; idempotent
	// if empty.
	Class event.EffectClass
	// Review asks a person first. Effects of class unsafe_once need one.
	Review *Question
	// Retry says how often a failed effect is tried. The zero Retry is once.
	Retry Retry
	// Timeout bounds an attempt; 0 is no bound.
	Timeout time.Duration
}

// Do runs f once and returns its result. If the turn is run again, Do returns the
// recorded result without a call of f, also if it is an error (*EffectError).
//
// The result is recorded as JSON, so T must encode and decode without a loss. Do must not
// be called inside an effect (ErrNestedEffect) or while another effect runs
// (ErrNestedEffect too): use Batch. The other errors are ErrDenied, ErrStart,
// ErrNeedsReconcile, *DivergenceError, and the errors that end the
// run: return them from the turn function.
func Do[T, S any](ctx context.Context, t *Turn[S], e Effect, f func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if done, err := t.t.replay(ctx, &e); err != nil {
		return none, err
	} else if done != nil {
		return decodeResult[T](t.t, *done, e.Name)
	}
	results, err := runBatch(ctx, t.t, false, 1, []Call[T]{{e, f}})
	if err != nil {
		return none, err
	}
	return results[0].Value, results[0].Err
}

// Call is one effect of a Batch.
type Call[T any] struct {
	Effect
	Do func(ctx context.Context) (T, error)
}

// Result is the result of a Call.
type Result[T any] struct {
	Value T
	Err   error
}

// Batch runs calls at the same time, at most n at a time if n > 0. The results have the
// order of the calls. A call that fails does not end the others. No call runs before all
// reviews of the batch are answered. Do lists the errors.
func Batch[T, S any](ctx context.Context, t *Turn[S], n int, calls ...Call[T]) ([]Result[T], error) {
	if len(calls) == 0 {
		return nil, nil
	}
	return runBatch(ctx, t.t, true, n, calls)
}

func runBatch[T any](ctx context.Context, t *turn, many bool, limit int, calls []Call[T]) ([]Result[T], error) {
	specs := make([]spec, len(calls))
	for i, c := range calls {
		arguments, err := encode(c.Arguments)
		if err != nil {
			return nil, fmt.Errorf("arguments of effect %q: %w", c.Name, err)
		}
		specs[i] = spec{kind: kindEffect, name: c.Name, arguments: arguments, class: c.Class, retry: c.Retry, timeout: c.Timeout,
			review: func(context.Context) (*Question, error) { return c.Review, nil }, reviewed: c.Review != nil,
			run: func(ctx context.Context) (outcome, error) {
				value, err := c.Do(ctx)
				if err != nil {
					return outcome{}, err
				}
				raw, err := encode(value)
				return outcome{result: raw}, err
			}}
	}
	settled, err := t.batch(ctx, many, limit, specs)
	if err != nil {
		return nil, err
	}
	results := make([]Result[T], len(settled))
	for i, s := range settled {
		results[i].Value, results[i].Err = decodeResult[T](t, s, specs[i].name)
		if errors.As(results[i].Err, new(*DivergenceError)) {
			return nil, results[i].Err
		}
	}
	return results, nil
}

// decodeResult decodes a recorded result. A result that does not decode into T is a
// *DivergenceError.
func decodeResult[T any](t *turn, s settled, name string) (value T, err error) {
	if err := s.failed(name); err != nil || s.done.Result == nil {
		return value, err
	}
	if raw, ok := any(&value).(*jsontext.Value); ok {
		*raw = s.done.Result
		return value, nil
	}
	if err := json.Unmarshal(s.done.Result, &value); err != nil {
		return value, t.undecodable(&s, value, err)
	}
	return value, nil
}

// The kinds of effects.
const (
	kindEffect = "effect"
	kindModel  = "model"
	kindTool   = "tool"
	kindWait   = "wait"
	kindPatch  = "patch"

	kindCompaction = "compaction"
	kindNewWait    = "new wait" // has a wait_started instead of an intent
)

// spec is an effect that the turn function asks for.
type spec struct {
	kind, name string
	arguments  jsontext.Value // compared with the record
	class      event.EffectClass
	callID     string
	retry      Retry
	timeout    time.Duration
	// review returns the review of the effect, nil if it needs none. reviewed reports that
	// there is a review function.
	review   func(ctx context.Context) (*Question, error)
	reviewed bool
	// recall prepares an attempt after the first one. It is called with r.mu held, at the
	// place in the log that the first attempt saw.
	recall func()
	// started are the events that follow the first intent.
	started func(key string) []event.Event
	// request is the request of a call of a model, for playback. It is called with r.mu held.
	request func() (*playback.Request, error)
	run     func(ctx context.Context) (outcome, error)
	// finish makes the events of a result, which are appended before it. o is the zero
	// outcome if err is not nil.
	finish func(key string, o outcome, err *event.EffectError, took time.Duration) []event.Event
}

// outcome is the result of an effect before it is recorded.
type outcome struct {
	result jsontext.Value
	parts  []event.Part // of a tool
	answer Response     // of a model
	usage  event.Usage
	cost   event.Cost // of the result
}

// settled is an effect with a recorded result.
type settled struct {
	key    string
	done   *event.EffectCompletion
	events []event.Event // of the outcome
	point  point
}

// failed is the recorded error of an effect as an *EffectError, nil if it has none.
func (s *settled) failed(name string) error {
	if e := s.done.Error; e != nil {
		return &EffectError{Name: name, Code: e.Code, Message: e.Message}
	}
	return nil
}

// Running describes the effect that runs.
type Running struct {
	Session string
	Turn    ulid.ULID
	// Key is the same at every attempt: use it as an idempotency key.
	Key     string
	Ordinal string
	Attempt int
	// CallID is the tool call, if the effect is one.
	CallID string
	// Answer is the answer that allowed the effect, nil if there was no review.
	Answer *event.ApprovalResolution

	effect *running // nil outside an effect
}

// running is the value of an effect's context.
type running struct {
	Running
	turn    *turn
	class   event.EffectClass
	intent  ulid.ULID // the event of the attempt
	begun   int64     // the last seq of the append of the first attempt
	updates []func(jsontext.Value) (jsontext.Value, error)
	added   []event.Event // messages and artifacts of the effect, appended with the result
	child   *child
	blocked bool          // the child waits
	after   []event.Event // of the child, appended with the result
	raw     raw.Sink      // captured calls
	bodies  []event.Event // with their bodies

	artifacts int // the ids that SetArtifact made
}

type runningKey struct{}

// FromContext returns the effect that runs with a context; false outside an effect.
func FromContext(ctx context.Context) (Running, bool) {
	x, ok := runningOf(ctx)
	if !ok {
		return Running{}, false
	}
	return x.Running, true
}

func runningOf(ctx context.Context) (*running, bool) {
	x, _ := ctx.Value(runningKey{}).(*running)
	return x, x != nil
}

// Update changes the custom state of the turn from inside an effect. f is called when
// the result of the effect is recorded, on the state of that moment. The change and the
// result are recorded together. An error of f is the result of the effect.
func Update[S any](ctx context.Context, f func(*S) error) error {
	x, ok := runningOf(ctx)
	if !ok {
		return fmt.Errorf("update the state: %w", errOutside)
	}
	x.turn.r.mu.Lock()
	defer x.turn.r.mu.Unlock()
	x.updates = append(x.updates, func(doc jsontext.Value) (jsontext.Value, error) { return updateDocument(doc, f) })
	return nil
}

// StateOf returns the custom state of the turn inside an effect, without the updates of
// effects that have no result yet. The error is a state that does not decode
// into S.
func StateOf[S any](ctx context.Context) (S, error) {
	var s S
	x, ok := runningOf(ctx)
	if !ok {
		return s, fmt.Errorf("read the state: %w", errOutside)
	}
	x.turn.r.mu.Lock()
	defer x.turn.r.mu.Unlock()
	return decodeState[S](x.turn.state.doc)
}

var errOutside = errors.New("the context is not the context of an effect")

func updateDocument[S any](doc jsontext.Value, f func(*S) error) (jsontext.Value, error) {
	s, err := decodeState[S](doc)
	if err != nil {
		return nil, err
	}
	if err := f(&s); err != nil {
		return nil, err
	}
	return encode(s)
}

func decodeState[S any](doc jsontext.Value) (s S, err error) {
	if isNull(doc) {
		return s, nil
	}
	err = json.Unmarshal(doc, &s)
	return s, err
}

// ordinals are the places of a batch's effects: "4" for a single one, else "4.0", "4.1".
func ordinals(n, count int, many bool) []string {
	if !many {
		return []string{strconv.Itoa(n)}
	}
	list := make([]string, count)
	for i := range list {
		list[i] = strconv.Itoa(n) + "." + strconv.Itoa(i)
	}
	return list
}

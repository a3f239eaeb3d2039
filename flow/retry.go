package flow

import (
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/convlog/convlog/event"
)

// Retry says how often an effect that failed is tried. The zero Retry is once. An effect
// of class unsafe_once is tried once.
type Retry struct {
	// Attempts is the number of attempts. An attempt that a kill or a hibernation ended does not count;
	// 1 if 0.
	Attempts int
	// First is the delay after the first attempt, 1 s if 0. It doubles with each attempt,
	// up to Max, 1 min if 0, and varies by a quarter. A longer delay that the error asks
	// for counts: an error may have the methods of ModelError, RetryAfter and Permanent.
	First, Max time.Duration
	// If reports whether an error is worth another attempt; nil is yes, unless the error is
	// permanent.
	If func(error) bool
}

// retryError is an error of an effect that knows when the next attempt makes sense.
type retryError interface {
	error
	// RetryAfter is the least time until the next attempt; 0 is no advice.
	RetryAfter() time.Duration
	// Permanent reports that no further attempt helps.
	Permanent() bool
}

// retryDelay is the delay before the next attempt; false if there is none.
func (x *effect) retryDelay(err error) (time.Duration, bool) {
	r := x.retry
	var advice retryError
	advised := errors.As(err, &advice)
	switch {
	case x.class == event.EffectUnsafeOnce: // an approval allows one attempt
		return 0, false
	case x.failures+1 >= r.Attempts, advised && advice.Permanent():
		return 0, false
	case r.If != nil && !r.If(err):
		return 0, false
	}
	delay := r.delay(x.failures + 1)
	if advised {
		delay = max(delay, advice.RetryAfter())
	}
	return delay, true
}

// delay is the delay after an attempt, counted from 1.
func (r Retry) delay(attempt int) time.Duration {
	first, limit := r.First, r.Max
	if first <= 0 {
		first = time.Second
	}
	if limit <= 0 {
		limit = time.Minute
	}
	d := first
	for i := 1; i < attempt && d < limit; i++ {
		d *= 2
	}
	d = min(d, limit)
	return d + time.Duration((rand.Float64()-0.5)/2*float64(d))
}

// permanent is an error that no attempt after it helps.
type permanent struct{ error }

func (p permanent) Unwrap() error             { return p.error }
func (p permanent) RetryAfter() time.Duration { return 0 }
func (p permanent) Permanent() bool           { return true }

// Permanent marks an error of an effect: no further attempt helps.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanent{err}
}

// isTransient reports whether the error of a model is worth another attempt.
func isTransient(err error) bool {
	var advice retryError
	if errors.As(err, &advice) {
		return !advice.Permanent()
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

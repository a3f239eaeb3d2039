package eventlog

import (
	"context"
	"errors"
	"time"
)

// The tries of UntilKnown.
const (
	maxUnknown   = 6
	unknownDelay = 50 * time.Millisecond
)

// UntilKnown calls try again while its error is ErrUnknownOutcome. try must append the
// same events each time: the log then stores them once. The waits between the tries grow.
// After six tries in 0.5 s of waits, or when ctx ends, UntilKnown returns the error of the
// last try.
func UntilKnown(ctx context.Context, try func() error) error {
	for n := 1; ; n++ {
		err := try()
		if !errors.Is(err, ErrUnknownOutcome) || n == maxUnknown || !pause(ctx, time.Duration(n-1)*unknownDelay) {
			return err
		}
	}
}

// pause waits for d. It reports false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

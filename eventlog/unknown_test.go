package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/eventlog"
)

func TestUntilKnown(t *testing.T) {
	other := errors.New("full")
	unknown := fmt.Errorf("append: %w", eventlog.ErrUnknownOutcome)
	for name, c := range map[string]struct {
		errs  []error
		tries int
		want  error
		waits time.Duration
	}{
		"known at once":  {[]error{nil}, 1, nil, 0},
		"another error":  {[]error{unknown, other}, 2, other, 0},
		"stored at last": {[]error{unknown, unknown, nil}, 3, nil, 50 * time.Millisecond},
		"never known":    {[]error{unknown, unknown, unknown, unknown, unknown, unknown, nil}, 6, eventlog.ErrUnknownOutcome, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, tries := time.Now(), 0
				err := eventlog.UntilKnown(t.Context(), func() error {
					tries++
					return c.errs[tries-1]
				})
				if !errors.Is(err, c.want) || tries != c.tries || time.Since(began) != c.waits {
					t.Errorf("got %v after %d tries and %v, want %v after %d and %v", err, tries, time.Since(began), c.want, c.tries, c.waits)
				}
			})
		})
	}
}

func TestUntilKnownEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := eventlog.UntilKnown(ctx, func() error {
		if tries++; tries == 2 {
			cancel()
		}
		return eventlog.ErrUnknownOutcome
	})
	if !errors.Is(err, eventlog.ErrUnknownOutcome) || tries != 2 {
		t.Errorf("got %v after %d tries, want an unknown outcome after 2", err, tries)
	}
}

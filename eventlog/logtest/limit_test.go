package logtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/memory"
)

// An append to a store whose limit is too small for any event is an error.
func TestSmallLimits(t *testing.T) {
	for _, limit := range []int{-1, 0, 1, 100, 300, 512} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			log := eventlog.Open(suite.LimitedStore{Store: memory.New(), Max: limit})
			defer log.Close()
			for _, text := range []string{"hello", strings.Repeat("hello", 1000)} {
				if _, err := log.Append(ctx, "s", eventlog.Any(), event.UserMessage(text)); !errors.Is(err, event.ErrInvalidSize) {
					t.Errorf("got error %v, want ErrInvalidSize", err)
				}
			}
		})
	}
}

package mint_test

import (
	"errors"
	"testing"
	"testing/iotest"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/mint"
)

// Every clock gives ids that differ and increase, and a failing source of randomness is
// replaced.
func TestIDsOfAnyClock(t *testing.T) {
	for name, at := range map[string]time.Time{
		"zero":        {},
		"before 1970": time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
		"year 9999":   time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		"year 10890":  time.Date(10890, 1, 1, 0, 0, 0, 0, time.UTC),
		"latest":      time.UnixMilli(1<<63 - 1),
	} {
		for _, m := range []*mint.Minter{{Now: func() time.Time { return at }}, {Now: func() time.Time { return at }, Random: iotest.ErrReader(errors.New("no randomness"))}} {
			var last ulid.ULID
			for range 3 {
				id := m.NewID()
				if id.Compare(last) <= 0 {
					t.Errorf("%s: id %s after %s", name, id, last)
				}
				last = id
			}
		}
	}
}

// Package mint mints the ids of events.
package mint

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Minter mints event ids: ULIDs that increase strictly within one Minter. The
// zero value uses the system's clock and randomness; tests inject both. It may be
// used concurrently.
type Minter struct {
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// Random is the source of entropy; crypto/rand if nil.
	Random io.Reader

	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64
}

// NewID mints an id. A clock that steps back does not make ids step back. A time that no
// ULID has becomes the nearest one: 1970 or 10889. If Random fails, NewID uses
// crypto/rand from then on.
func (m *Minter) NewID() ulid.ULID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entropy == nil {
		m.entropy = entropyOf(m.Random)
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	m.last = max(m.last, idTime(now()))
	for {
		id, err := ulid.New(m.last, m.entropy)
		switch {
		case err == nil:
			return id
		case errors.Is(err, ulid.ErrMonotonicOverflow) && m.last < ulid.MaxTime():
			m.last++ // the entropy of this millisecond is used up
		default:
			m.entropy = entropyOf(nil)
		}
	}
}

// entropyOf makes the entropy of a source, or of crypto/rand, which never fails.
func entropyOf(random io.Reader) *ulid.MonotonicEntropy {
	if random == nil {
		random = bufio.NewReaderSize(rand.Reader, 4096)
	}
	return ulid.Monotonic(random, 0)
}

// idTime is the time of an id, in milliseconds since 1970.
func idTime(t time.Time) uint64 {
	return min(uint64(max(t.UnixMilli(), 0)), ulid.MaxTime())
}

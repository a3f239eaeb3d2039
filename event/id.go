package event

import (
	"bufio"
	"crypto/rand"
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

var defaultMinter Minter

// NewID mints an id with the system's clock and randomness.
func NewID() ulid.ULID { return defaultMinter.NewID() }

// NewID mints an id. A clock that steps back does not make ids step back.
func (m *Minter) NewID() ulid.ULID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entropy == nil {
		random := m.Random
		if random == nil {
			random = bufio.NewReaderSize(rand.Reader, 4096)
		}
		m.entropy = ulid.Monotonic(random, 0)
	}
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	m.last = max(m.last, ulid.Timestamp(now()))
	for {
		id, err := ulid.New(m.last, m.entropy)
		if err == nil {
			return id
		}
		// The entropy of this millisecond is used up. Take the next one.
		m.last++
	}
}

// New is the function New with m's ids.
func (m *Minter) New(p Payload) Event {
	e := Event{ID: m.NewID()}
	e.encode(p)
	return e
}

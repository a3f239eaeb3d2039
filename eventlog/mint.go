package eventlog

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Minter mints event ids: ULIDs that increase strictly within one Minter. The
// zero value uses the system's clock and randomness. It may be used
// concurrently. Tests inject both.
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
		// The entropy of this millisecond is used up: take the next one.
		m.last++
	}
}

// NewEvent is the function NewEvent with m's ids.
func (m *Minter) NewEvent(p Payload) (Event, error) {
	e := Event{ID: m.NewID()}
	if err := e.encode(p); err != nil {
		return Event{}, err
	}
	if err := e.rare.facts.invalid; err != nil {
		return Event{}, fmt.Errorf("new %s: %w", e.Type, err)
	}
	return e, nil
}

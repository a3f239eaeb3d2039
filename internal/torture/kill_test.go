//go:build unix

package torture

import (
	"math"
	"testing"
	"time"
)

const (
	// groupSize is how many processes write concurrently.
	groupSize = 4
	// killsPerStore is how many processes are killed before a new store is used.
	killsPerStore = 40
	// killsBetweenChecks is how many processes are killed between two checks of a
	// store.
	killsBetweenChecks = 5
)

// Writers are killed at any moment: during an append, while they open or create the
// store, or during a checkpoint. Sometimes one is killed while others continue,
// sometimes all. Every acknowledged step is stored once and unchanged. Every other step
// is stored completely or not at all, and a retry stores it once.
func TestKill(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *fixture) {
		kills, within, events := 0, 0, 0
		for kills < *killsFlag {
			c := s.withEmptyStore().startGroup(groupSize, job{})
			c.killMany(min(killsPerStore, *killsFlag-kills))
			kills, within, events = kills+c.killed, within+c.inStep, events+c.ledger.events()
		}
		t.Logf("%d kills, %d of them within a step; %d events acknowledged, none lost", kills, within, events)
	})
}

// killMany kills n members, the last ones all at once, and checks the store in between.
func (c *group) killMany(n int) {
	c.Helper()
	for checked := 0; c.killed+groupSize < n; {
		switch i := c.random.IntN(groupSize); c.random.IntN(12) {
		case 0:
			c.crashAll()
			c.relaunch()
		case 1: // at any moment, perhaps before its first step
			c.waitRandom(30 * time.Millisecond)
			c.replace(i)
		default:
			c.waitBusy(c.members[i])
			c.waitRandom(5 * time.Millisecond)
			c.replace(i)
		}
		if c.killed-checked >= killsBetweenChecks {
			c.check(false)
			checked = c.killed
		}
	}
	c.crashAll()
}

// crashAll kills all members, checks the store, and repeats the interrupted steps.
func (c *group) crashAll() {
	c.Helper()
	c.waitBusy(c.members[c.random.IntN(len(c.members))])
	c.waitRandom(3 * time.Millisecond)
	c.killAll()
	c.check(true)
	c.takeOver()
	c.check(true)
}

// waitRandom waits for a random time up to most. The distribution is logarithmic.
func (c *group) waitRandom(most time.Duration) {
	until := time.Now().Add(time.Duration(math.Exp(c.random.Float64() * math.Log(float64(most)))))
	if wait := time.Until(until); wait > time.Millisecond {
		time.Sleep(wait)
	}
	for time.Now().Before(until) {
	}
}

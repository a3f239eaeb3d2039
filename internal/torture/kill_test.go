package torture

import (
	"math"
	"testing"
	"time"
)

const (
	// crewSize is how many processes write at the same time.
	crewSize = 4
	// killsOfRound is how many die in one store, before the next one begins.
	killsOfRound = 40
	// killsBetweenChecks is how many die between two checks of a store.
	killsBetweenChecks = 5
)

// Writers are killed at any moment: while they append, open the store, make
// it, or fold back its log; one beside others that go on, or all at once. What
// was acknowledged is there, once and as it was made; what was not is whole or
// absent, and doing it again stores it once.
func TestKill(t *testing.T) {
	onEach(t, func(t *testing.T, s *scene) {
		kills, within, events := 0, 0, 0
		for kills < *killsFlag {
			c := s.another().crew(crewSize, job{})
			c.massacre(min(killsOfRound, *killsFlag-kills))
			kills, within, events = kills+c.killed, within+c.within, events+c.ledger.events()
		}
		t.Logf("%d kills, %d of them within a step; %d events acknowledged, none lost", kills, within, events)
	})
}

// massacre kills n members of the crew, in the end all at once, and checks the
// store all the while.
func (c *crew) massacre(n int) {
	c.Helper()
	for checked := 0; c.killed+crewSize < n; {
		switch i := c.random.IntN(crewSize); c.random.IntN(12) {
		case 0:
			c.killAll()
			c.relaunch()
		case 1: // wherever it is, perhaps not even born
			c.linger(30 * time.Millisecond)
			c.replace(i)
		default:
			c.busy(c.members[i])
			c.linger(5 * time.Millisecond)
			c.replace(i)
		}
		if c.killed-checked >= killsBetweenChecks {
			c.check(false)
			checked = c.killed
		}
	}
	c.killAll()
}

// killAll kills everybody, so that the next to open the store finds it as they
// left it, and repeats what they were doing.
func (c *crew) killAll() {
	c.Helper()
	c.busy(c.members[c.random.IntN(len(c.members))])
	c.linger(3 * time.Millisecond)
	c.buryAll()
	c.check(true)
	c.succeed()
	c.check(true)
}

// linger waits for a random time up to most, short ones as likely as long.
func (c *crew) linger(most time.Duration) {
	until := time.Now().Add(time.Duration(math.Exp(c.random.Float64() * math.Log(float64(most)))))
	if wait := time.Until(until); wait > time.Millisecond {
		time.Sleep(wait)
	}
	for time.Now().Before(until) {
	}
}

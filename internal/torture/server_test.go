//go:build unix

package torture

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// serverBackend is a store on a server. A file in the folder of a fixture has its URL.
func serverBackend(name string, open, readOnly func(url string) (eventlog.Store, error)) backend {
	in := func(open func(string) (eventlog.Store, error)) func(string) eventlog.Store {
		return func(dir string) eventlog.Store {
			url, err := os.ReadFile(urlFile(dir))
			if err != nil {
				panic(err)
			}
			store, err := open(string(url))
			if err != nil {
				panic(err)
			}
			return store
		}
	}
	return backend{name: name, open: in(open), readOnly: in(readOnly)}
}

func urlFile(dir string) string { return filepath.Join(dir, "url") }

// newServerFixture returns a fixture whose store is at a URL.
func newServerFixture(t *testing.T, b backend, url string) *fixture {
	s := newFixture(t, b)
	s.must(os.WriteFile(urlFile(s.dir), []byte(url), 0o600))
	return s
}

// writersPerProcess is how many writers each process has that writes to a server.
var writersPerProcess = testsize.Pick(1, 1, 4)

// pauseOfWriters is the pause between two steps of a writer to a server. Without one, writers
// use all processors as long as an incident lasts.
var pauseOfWriters = testsize.Pick[time.Duration](50, 50, 0) * time.Millisecond

// endure lets processes write while incidents happen. After each incident, all of them
// continue, and the store has every acknowledged step once.
func endure(t *testing.T, s *fixture, incidents ...func(c *group)) {
	t.Helper()
	c := s.startGroups(groupSize, writersPerProcess, job{Pause: pauseOfWriters})
	for _, incident := range incidents {
		c.waitBusy(c.members[c.random.IntN(groupSize)])
		c.waitRandom(100 * time.Millisecond)
		incident(c)
		for _, m := range c.members {
			c.waitBusy(m)
		}
		c.check(false)
	}
	c.crashAll()
	if c.ledger.events() == 0 {
		t.Error("no event was acknowledged")
	}
	t.Logf("%d events acknowledged, none lost", c.ledger.events())
}

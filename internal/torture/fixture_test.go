//go:build unix

package torture

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

var (
	killsFlag     = flag.Int("torture.kills", testsize.Pick(3, 5, 40), "how many processes TestKill kills, for each store")
	sessionsFlag  = flag.Int("torture.sessions", testsize.Pick(20, 30, 200), "how many sessions run at once in TestManySessions")
	turnsFlag     = flag.Int("torture.turns", testsize.Pick(3, 4, 12), "how many turns the agents of TestKillFlow have; those of TestKillFamily have a quarter")
	stepsFlag     = flag.Int("torture.steps", testsize.Pick(8, 12, 60), "how many steps each writer of TestProcesses makes")
	incidentsFlag = flag.Int("torture.incidents", testsize.Pick(2, 3, 16), "how many incidents happen in TestReadersDuringIncidents")
	seedFlag      = flag.Uint64("torture.seed", 0, "seed of the steps; 0 is a random seed")
)

// The test binary is also the child process that appends, reads or holds a lock.
func TestMain(m *testing.M) {
	if text := os.Getenv(jobVariable); text != "" {
		if err := runJob(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	_ = flag.Set("test.parallel", "8") // they mostly wait
	flag.Parse()
	os.Exit(m.Run())
}

// backend is a store under test.
type backend struct {
	name     string
	open     func(dir string) eventlog.Store
	readOnly func(dir string) eventlog.Store
	// url returns the URL of an empty store on a server, and lease is how long a lease outlives
	// a process that was killed. They are nil and 0 for a store in files.
	url   func(t testing.TB) string
	lease time.Duration
}

var backends = []backend{
	{
		name:     "jsonl",
		open:     func(dir string) eventlog.Store { return jsonl.New(dir) },
		readOnly: func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{ReadOnly: true}) },
	},
	{
		name:     "sqlite",
		open:     func(dir string) eventlog.Store { return sqlite.New(databaseIn(dir)) },
		readOnly: func(dir string) eventlog.Store { return sqlite.New(databaseIn(dir), sqlite.Options{ReadOnly: true}) },
	},
}

func databaseIn(dir string) string { return filepath.Join(dir, "s.db") }

// log opens the log in dir. SpillOver is small, so that blobs are common.
func (b backend) log(dir string) *eventlog.Log {
	return eventlog.Open(b.open(dir), eventlog.Options{SpillOver: spillOver})
}

const spillOver = 4 << 10

func backendNamed(name string) (backend, error) {
	for _, b := range append(backends, postgresBackend, agentsOnPostgres, jetstreamBackend) {
		if b.name == name {
			return b, nil
		}
	}
	return backend{}, fmt.Errorf("no store %q", name)
}

// onEach runs a test on every store, each in its own folder.
func onEach(t *testing.T, test func(t *testing.T, s *fixture)) {
	for _, b := range backends {
		on(t, b, test)
	}
}

func on(t *testing.T, b backend, test func(t *testing.T, s *fixture)) {
	name, _, _ := strings.Cut(b.name, " ")
	t.Run(name, func(t *testing.T) {
		parallelUnlessLong(t)
		test(t, newFixture(t, b))
	})
}

// parallelUnlessLong runs a subtest in parallel with others in the smaller forms, where it mostly
// waits. In the long form it would keep servers from starting in time.
func parallelUnlessLong(t *testing.T) {
	if testsize.Of() < testsize.Long {
		t.Parallel()
	}
}

// fixture is a store in a folder, and a seed.
type fixture struct {
	testing.TB
	backend backend
	dir     string
	seed    uint64
	levels  int // of children below the agent
	random  *rand.Rand
	ctx     context.Context
	// serverStacks, if set, ends the server of the store and returns the stacks of its goroutines.
	serverStacks func() string
}

// testTimeout bounds a test that hangs.
const testTimeout = 20 * time.Minute

func newFixture(t testing.TB, b backend) *fixture {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-torture.seed %d", seed)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	s := &fixture{TB: t, backend: b, dir: t.TempDir(), seed: seed, random: rand.New(rand.NewPCG(seed, 0)), ctx: ctx}
	s.place()
	return s
}

// place notes the URL of an empty store in the folder.
func (s *fixture) place() {
	if s.backend.url != nil {
		s.must(os.WriteFile(urlFile(s.dir), []byte(s.backend.url(s.TB)), 0o600))
	}
}

// withEmptyStore returns a fixture with an empty store and other steps.
func (s *fixture) withEmptyStore() *fixture {
	next := *s
	next.dir, next.seed = s.TempDir(), s.random.Uint64()
	next.place()
	return &next
}

// log opens the fixture's log until the test ends.
func (s *fixture) log() *eventlog.Log {
	l := s.backend.log(s.dir)
	s.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return l
}

func (s *fixture) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("unexpected error: %v", err)
	}
}

// wantErr ends the test unless err matches want.
func (s *fixture) wantErr(want, err error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got error %v, want %v", err, want)
	}
}

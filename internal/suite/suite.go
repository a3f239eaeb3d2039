package suite

import (
	"flag"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
)

// Harness is storetest.Harness: see there.
type Harness struct {
	Open         func() (eventlog.Store, error)
	OneHandle    bool
	OpenReadOnly func() (eventlog.Store, error)
	Path         string
	Holds        func(text string) (where string)
	Network      Network
	OpenBeside   func() (eventlog.Store, error)
	Latency      time.Duration
	Parallel     bool
	Sample       int
	Damage       func(session string, edit func(lines []string) []string) error
}

// Opener returns the harness of a new, empty store. t ends with the promise's subtest.
type Opener func(t testing.TB) Harness

// Need is a capability that a promise needs and not every store has.
type Need string

// The capabilities. Run finds the capabilities of a store and its harness.
const (
	Handles    Need = "several handles"
	ReadOnly   Need = "read-only handles"
	Damage     Need = "damaged lines"
	Networks   Need = "network"
	Blobs      Need = "blobs"
	Leaser     Need = "leaser"
	Notifier   Need = "notifier"
	Locker     Need = "locker"
	Eraser     Need = "eraser"
	Versioner  Need = "versioner"
	Syncer     Need = "syncer"
	Bulk       Need = "bulk versioner"
	Sweeper    Need = "sweeper"
	Salvager   Need = "salvager"
	Cataloger  Need = "cataloger"
	Lister     Need = "lister"
	Relater    Need = "relater"
	BlobIndex  Need = "blob index"
	Identifier Need = "identifier"
)

// capabilities returns the capabilities of a store and its harness.
func capabilities(t testing.TB, h Harness) []Need {
	s, err := h.Open()
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	var has []Need
	for need, found := range map[Need]bool{
		Handles: !h.OneHandle, ReadOnly: h.OpenReadOnly != nil, Damage: h.Damage != nil, Networks: h.Network != nil,
		Blobs: hasAbility[eventlog.Blobs](s), Locker: hasAbility[eventlog.Locker](s), Eraser: hasAbility[eventlog.Eraser](s),
		Leaser: hasAbility[eventlog.Leaser](s), Notifier: hasAbility[eventlog.Notifier](s), Versioner: hasAbility[eventlog.Versioner](s), Syncer: hasAbility[eventlog.Syncer](s), Bulk: hasAbility[eventlog.BulkVersioner](s),
		Sweeper: hasAbility[eventlog.Sweeper](s), Salvager: hasAbility[eventlog.Salvager](s), Cataloger: hasAbility[eventlog.Cataloger](s),
		Lister: hasAbility[eventlog.Lister](s), Relater: hasAbility[eventlog.Relater](s), BlobIndex: hasAbility[eventlog.BlobIndex](s),
		Identifier: hasAbility[eventlog.Identifier](s),
	} {
		if found {
			has = append(has, need)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatalf("close the store: %v", err)
	}
	return has
}

func hasAbility[T any](s eventlog.Store) bool {
	_, ok := eventlog.As[T](s)
	return ok
}

// Case is one promise. T is the type of its environment.
type Case[T any] struct {
	Name        string
	Explanation string
	Needs       []Need
	Run         func(t T)
}

// Group has the promises about one subject.
type Group[T any] struct {
	Name  string
	Cases []Case[T]
}

// RunGroups tests every promise as a subtest of t. newEnv makes the environment of a
// promise. Promises with missing capabilities are skipped.
func RunGroups[T any](t *testing.T, open Opener, groups []Group[T], newEnv func(*Env) T) {
	h := open(t)
	has := capabilities(t, h)
	for i, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			parallelIf(t, h.Parallel)
			for j, c := range g.Cases {
				if slices.ContainsFunc(c.Needs, func(n Need) bool { return !slices.Contains(has, n) }) {
					continue
				}
				if h.Sample == 0 || testsize.Every(i+j, h.Sample) {
					t.Run(c.Name, func(t *testing.T) {
						parallelIf(t, h.Parallel)
						c.Check(t, open, caseTimeout(), newEnv)
					})
				}
			}
		})
	}
}

// parallelIf runs a test in parallel with others if the harness says so.
func parallelIf(t *testing.T, parallel bool) {
	if parallel {
		t.Parallel()
	}
}

// caseTimeout is the time limit of a promise: 3 minutes, or more if the flags ask for more
// random histories than rapid's 100.
func caseTimeout() time.Duration {
	const limit, checks = 3 * time.Minute, 100
	if f := flag.Lookup("rapid.checks"); f != nil {
		if n, err := strconv.Atoi(f.Value.String()); err == nil && n > checks {
			return limit * time.Duration(n) / checks
		}
	}
	return limit
}

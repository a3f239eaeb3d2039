package suite

import (
	"context"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// Harness is one empty store under test. Each promise gets a fresh one.
type Harness struct {
	// Open opens the store's data for reading and writing. After Close it is
	// called again and must show the same data.
	Open func() (eventlog.Store, error)
	// OneHandle says that Open must not be called while another handle is open.
	OneHandle bool
	// OpenReadOnly opens the same data for reading, while no other handle is open. It
	// is called also before anything was written. nil if the store cannot do that.
	OpenReadOnly func() (eventlog.Store, error)
	// Path is the folder or file with the data. Its parent folder holds nothing else,
	// but for files whose names begin with the same name. Empty if the data is not in
	// files.
	Path string
	// Holds says where the store has a text in its data, for a store without files;
	// empty if nowhere. No handle is open. nil if the store cannot tell: then
	// erasures are checked through the log only.
	Holds func(text string) (where string)
	// Damage changes what is stored of a session, as a failing disk would: edit gets
	// its raw lines, newlines included, and returns those to store. No handle is open.
	// nil if the store's data cannot be changed that way.
	Damage func(session string, edit func(lines []string) []string) error
}

// Opener makes an empty store. t lives as long as the promise under test.
type Opener func(t testing.TB) Harness

// Need is something that a promise needs and not every store has.
type Need string

// What a promise may need. Of a store and its harness, Run finds it by itself.
const (
	Handles   Need = "several handles"
	ReadOnly  Need = "read-only handles"
	Damage    Need = "damaged lines"
	Blobs     Need = "blobs"
	Locker    Need = "locker"
	Eraser    Need = "eraser"
	Versioner Need = "versioner"
	Syncer    Need = "syncer"
	Sweeper   Need = "sweeper"
	Salvager  Need = "salvager"
)

// needsOf is what a store and its harness can do.
func capabilities(t testing.TB, h Harness) []Need {
	s, err := h.Open()
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	var has []Need
	for need, found := range map[Need]bool{
		Handles: !h.OneHandle, ReadOnly: h.OpenReadOnly != nil, Damage: h.Damage != nil,
		Blobs: hasAbility[eventlog.Blobs](s), Locker: hasAbility[eventlog.Locker](s), Eraser: hasAbility[eventlog.Eraser](s),
		Versioner: hasAbility[eventlog.Versioner](s), Syncer: hasAbility[eventlog.Syncer](s),
		Sweeper: hasAbility[eventlog.Sweeper](s), Salvager: hasAbility[eventlog.Salvager](s),
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

// Case is one promise. T is the environment that it runs in.
type Case[T any] struct {
	Name        string
	Explanation string
	Needs       []Need
	Run         func(t T)
}

// Group is the promises about one noun.
type Group[T any] struct {
	Name  string
	Cases []Case[T]
}

// RunGroups tests every promise as a subtest of t. in makes the environment of a
// promise. Promises that need what the store lacks are left out.
func RunGroups[T any](t *testing.T, open Opener, groups []Group[T], in func(*Env) T) {
	has := capabilities(t, open(t))
	for _, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			for _, c := range g.Cases {
				if !slices.ContainsFunc(c.Needs, func(n Need) bool { return !slices.Contains(has, n) }) {
					t.Run(c.Name, func(t *testing.T) { c.Check(t, open, caseTimeout, in) })
				}
			}
		})
	}
}

// longest is when a promise counts as broken because nothing happens.
const caseTimeout = 3 * time.Minute

// Check tests one promise on a fresh store, within limit.
func (c *Case[T]) Check(t testing.TB, open Opener, limit time.Duration, in func(*Env) T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	e := &Env{TB: t, Ctx: ctx, Harness: open(t), Opener: open, Limit: limit}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		e.Close()
		if t.Failed() {
			t.Logf("the promise: %s", c.Explanation)
		}
	}()
	c.Run(in(e))
}

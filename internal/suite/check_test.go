package suite

import (
	"strings"
	"testing"
	"time"
)

// check tests a promise with its code, and returns what it reports.
func check(t *testing.T, run func(*Env)) string {
	t.Helper()
	c := Case[*Env]{Name: "a promise", Explanation: "A promise of the test.", Run: run}
	r := try(t, c, OpenMemory, 20*time.Millisecond, 20*time.Millisecond, func(e *Env) *Env { return e })
	return strings.Join(r.texts, "\n")
}

// A promise whose store ignores its context ends.
func TestPromiseThatNeverEnds(t *testing.T) {
	forever := make(chan struct{})
	defer close(forever)
	if got := check(t, func(*Env) { <-forever }); !strings.HasPrefix(got, neverEnds) || !strings.Contains(got, "A promise of the test.") {
		t.Errorf("reported %q, want %q", got, neverEnds)
	}
}

// A promise that was left reports nothing, because its test may have ended.
func TestPromiseThatEndsLate(t *testing.T) {
	late, ended := make(chan struct{}), make(chan struct{})
	var reports int
	check(t, func(e *Env) {
		defer close(ended)
		<-late
		e.Errorf("late")
		reports++
	})
	close(late)
	<-ended
	if reports > 0 {
		t.Error("a promise that was left continues after a report")
	}
}

// A promise reports an unexpected result with its place, and a panic of the store with its
// stack.
func TestPromiseThatPanics(t *testing.T) {
	var none []int
	if got := check(t, func(e *Env) { e.WantEqual("events", 1, none[0]) }); !strings.HasPrefix(got, "check_test.go:") || strings.Contains(got, "goroutine") {
		t.Errorf("an unexpected result is reported as %q", got)
	}
	errs := Concurrently(2, func(i int) error {
		if i == 1 {
			return nil
		}
		return []error{}[i]
	})
	if errs[0] == nil || errs[1] != nil || !strings.HasPrefix(errs[0].Error(), "check_test.go:") {
		t.Errorf("unexpected results beside each other: %v", errs)
	}
	if got := check(t, func(*Env) { _ = strings.Repeat("x", -1) }); !strings.HasPrefix(got, "panic: ") || !strings.Contains(got, "goroutine") {
		t.Errorf("a panic of other code is reported as %q", got)
	}
}

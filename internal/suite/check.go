package suite

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// Check tests one promise on a new store. The context of the promise ends after limit. A
// promise that then does not end within the same time fails, and its goroutine is left
// alone.
func (c *Case[T]) Check(t testing.TB, open Opener, limit time.Duration, newEnv func(*Env) T) {
	c.checkWithin(t, open, limit, limit, newEnv)
}

// checkWithin is Check of a promise that may take grace after the end of its context.
func (c *Case[T]) checkWithin(t testing.TB, open Opener, limit, grace time.Duration, newEnv func(*Env) T) {
	b := &boundedTest{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(b, open, limit, newEnv)
	}()
	timer := time.NewTimer(limit + grace)
	defer timer.Stop()
	select {
	case <-done:
		b.leave()
	case <-timer.C:
		b.leave()
		t.Fatalf("%s %v after the end of its context. Promise: %s\n%s", neverEnds, grace, c.Explanation, stacks())
	}
}

const neverEnds = "the promise has not ended"

func (c *Case[T]) run(t testing.TB, open Opener, limit time.Duration, newEnv func(*Env) T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	e := &Env{TB: t, Ctx: ctx, Harness: open(t), Opener: open, Limit: limit}
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s", described(p))
		}
		e.Close()
		if t.Failed() {
			t.Logf("promise: %s", c.Explanation)
		}
	}()
	c.Run(newEnv(e))
}

// stacks returns the stacks of all goroutines, or the first 64 KiB of them.
func stacks() []byte {
	text := make([]byte, 64<<10)
	return text[:runtime.Stack(text, true)]
}

// kit has the packages of the promises.
var kit = []string{"convlog/internal/suite.", "convlog/store/storetest.", "convlog/eventlog/logtest."}

// described describes a panic that was just recovered. A panic in the code of a promise
// comes from a store that returned less than the promise expects, so the place says enough.
// Any other panic has its stack.
func described(p any) string {
	frame := panicked()
	for _, room := range kit {
		if strings.Contains(frame.Function, room) {
			return fmt.Sprintf("%s:%d: the store returned too little, and the promise cannot go on: %v", filepath.Base(frame.File), frame.Line, p)
		}
	}
	return fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
}

// panicked returns the place of a panic that was just recovered.
func panicked() runtime.Frame {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	below := false // the frame is below the panic
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		if below && !inRuntime || !more {
			return f
		}
		below = below || f.Function == "runtime.gopanic"
	}
}

// boundedTest is the test of a promise. After leave it reports nothing more, and ends the
// goroutines that report something: a promise that failed may leave some, and the test may
// be over.
type boundedTest struct {
	testing.TB
	mu   sync.Mutex
	left bool
}

func (b *boundedTest) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = true
}

// report calls fn, unless the promise was left.
func (b *boundedTest) report(fn func()) {
	b.TB.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left {
		runtime.Goexit()
	}
	fn()
}

func (b *boundedTest) Logf(format string, args ...any) {
	b.TB.Helper()
	b.report(func() { b.TB.Helper(); b.TB.Logf(format, args...) })
}

func (b *boundedTest) Errorf(format string, args ...any) {
	b.TB.Helper()
	b.report(func() { b.TB.Helper(); b.TB.Errorf(format, args...) })
}

func (b *boundedTest) Fatalf(format string, args ...any) {
	b.TB.Helper()
	b.Errorf(format, args...)
	runtime.Goexit()
}

// rapid also ends a test with Fail and FailNow.
func (b *boundedTest) Fail() { b.report(b.TB.Fail) }

func (b *boundedTest) FailNow() {
	b.Fail()
	runtime.Goexit()
}

package suite

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/internal/testsize"
)

// Fails tests a promise without failing t. It reports whether the promise failed.
func Fails[T any](t *testing.T, c Case[T], open Opener, newEnv func(*Env) T) bool {
	return try(t, c, open, testsize.Pick[time.Duration](500, 1000, 3000)*time.Millisecond, 3*time.Second, newEnv).failed
}

// try tests a promise without failing t.
func try[T any](t *testing.T, c Case[T], open Opener, limit, grace time.Duration, newEnv func(*Env) T) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.checkWithin(r, open, limit, grace, newEnv)
	}()
	<-done
	return r
}

// recorder records the failures of a promise instead of failing the test.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	texts  []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// rapid also ends a test with Fail and FailNow.
func (r *recorder) Fail()    { r.Errorf("failed") }
func (r *recorder) FailNow() { r.Fatalf("failed") }

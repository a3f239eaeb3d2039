package opencode

import (
	"testing"
	"time"
)

// WaitFor sets the time to wait for a locked database during a test.
func WaitFor(t *testing.T, wait time.Duration) {
	before := lockWait
	lockWait = wait
	t.Cleanup(func() { lockWait = before })
}

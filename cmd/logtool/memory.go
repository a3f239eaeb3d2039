package main

import (
	"os"
	"runtime/debug"
)

// The memory of a command that lists all sessions, in bytes: Go frees memory more often
// near this bound. The rows of 100,000 sessions fit into the least bound.
const (
	leastMemory   = 36 << 20
	sessionMemory = 400
)

// setMemory bounds the memory of the program, unless the user did.
func setMemory(sessions int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(max(leastMemory, sessions*sessionMemory)))
	}
}

// bound bounds the memory of a command that has listed some sessions.
func (a *app) bound(sessions int) {
	if a.setMemory != nil && sessions%10_000 == 0 {
		a.setMemory(sessions)
	}
}

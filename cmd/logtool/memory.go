package main

import (
	"iter"
	"os"
	"runtime/debug"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// The memory of a command that lists all sessions, in bytes: Go frees memory more often
// near this bound. A row of a session has some 400 bytes: with a bound of twice that, a list
// takes three times as long.
const (
	leastMemory   = 36 << 20
	headsMemory   = 30 << 20 // of heads, which are less than rows
	sessionMemory = 1200
)

// setMemory bounds the memory of the program, unless the user did.
func setMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}

// bound bounds the memory of a command that has listed some sessions.
func (a *app) bound(sessions int) {
	if a.setMemory != nil && sessions%10_000 == 0 {
		a.setMemory(max(leastMemory, int64(sessions)*sessionMemory))
	}
}

// boundRecords bounds the memory of an import, if a file may be one large record: an import needs
// 64 MiB and four times its longest record.
func (a *app) boundRecords(files []interop.Candidate) {
	const large = 32 << 20
	longest := int64(0)
	for _, f := range files {
		longest = max(longest, min(f.Bytes, interop.MaxRecord))
	}
	if a.setMemory != nil && longest > large {
		a.setMemory(64<<20 + 3*longest)
	}
}

// bounded bounds the memory of a command while it lists sessions.
func (a *app) bounded(sessions iter.Seq2[eventlog.SessionInfo, error]) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		n := 0
		for info, err := range sessions {
			if a.bound(n); !yield(info, err) {
				return
			}
			n++
		}
	}
}

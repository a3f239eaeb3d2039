package eventlog

import (
	"sync"

	"github.com/convlog/convlog/event"
)

// knownPath is a path from the start of a session. Its newest event has the hash of
// end, which depends on all older events.
type knownPath struct {
	end  event.Head
	path event.Path
}

// knownPaths has the paths that were found in some sessions, so that the next reading of
// a long path reads only the newer events twice.
type knownPaths struct {
	mu        sync.Mutex
	bySession map[string]knownPath
}

const (
	// maxKnown is the number of sessions in knownPaths, and maxStretches the number of
	// stretches of each.
	maxKnown, maxStretches = 32, 16_384
	// minKnown is the seq at which the shortest path in knownPaths ends.
	minKnown = 1024
)

func (k *knownPaths) get(session string) knownPath {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bySession[session]
}

// put adds or replaces a path, unless it ends early or has many stretches. It drops the path
// of another session if there are too many.
func (k *knownPaths) put(session string, p knownPath) {
	if p.end.Seq < minKnown || len(p.path) > maxStretches {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bySession == nil {
		k.bySession = map[string]knownPath{}
	}
	if _, known := k.bySession[session]; !known && len(k.bySession) >= maxKnown {
		for other := range k.bySession {
			delete(k.bySession, other)
			break
		}
	}
	k.bySession[session] = p
}

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
	stretches int // of all paths
}

const (
	// maxKnown is the number of sessions in knownPaths, and maxStretches the number of
	// stretches of all of them: 8 MiB.
	maxKnown, maxStretches = 32, 512 << 10
	// minKnown is the seq at which the shortest path in knownPaths ends.
	minKnown = 1024
)

func (k *knownPaths) get(session string) knownPath {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.bySession[session]
}

// put adds or replaces a path, unless it ends early or has too many stretches. It drops
// paths of other sessions to make room.
func (k *knownPaths) put(session string, p knownPath) {
	if p.end.Seq < minKnown || len(p.path) > maxStretches {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(session)
	for other := range k.bySession {
		if len(k.bySession) < maxKnown && k.stretches+len(p.path) <= maxStretches {
			break
		}
		k.drop(other)
	}
	if k.bySession == nil {
		k.bySession = map[string]knownPath{}
	}
	k.bySession[session] = p
	k.stretches += len(p.path)
}

// drop forgets a session. The caller holds mu.
func (k *knownPaths) drop(session string) {
	k.stretches -= len(k.bySession[session].path)
	delete(k.bySession, session)
}

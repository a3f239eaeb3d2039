package jsonl

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"
)

// savedFiles remembers the names of the saved torn tails and backup copies of all sessions
// while the store holds its exclusive lock, so that many removals and rewrites list the
// folder once.
//
// The lock excludes the repairs of other processes. A writer of another process may still
// save a torn tail. It then truncates the session, whose time becomes later than the
// listing. A writer that is killed in between leaves the torn tail in the session, and this
// store saves it again. The clock must not be set back while the lock is held: a torn tail that
// is saved then could look older than the listing, and would stay.
type savedFiles struct {
	mu     sync.Mutex
	held   bool // the store holds its exclusive lock
	listed bool
	at     time.Time // the start of the listing
	names  []string
}

// begin and end enclose the time in which the store holds its exclusive lock.
func (s *savedFiles) begin() { s.set(true) }
func (s *savedFiles) end()   { s.set(false) }

func (s *savedFiles) set(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.listed, s.names = held, false, nil
}

// forget drops the listing, because this store is about to save, rename or copy a file.
func (s *savedFiles) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.names = false, nil
}

// list returns names that include all saved files of a session, or nothing if there are
// none. isOf is true for the names of these files. changed is the time of the last change
// of the session's file, which the caller has locked. ForgetCut of another process renames a
// saved file, so the files of a session that had some are listed again.
func (s *savedFiles) list(dir FS, changed time.Time, isOf func(name string) bool) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held && s.listed && s.at.Sub(changed) >= timeGrain && !slices.ContainsFunc(s.names, isOf) {
		return nil, nil // there are none
	}
	at := time.Now()
	entries, err := dir.ReadDir(".")
	if err != nil {
		return nil, err
	}
	names := slices.DeleteFunc(namesOf(entries), func(name string) bool {
		return !strings.Contains(name, tornInfix) && !strings.Contains(name, damagedInfix)
	})
	if s.held {
		s.at, s.listed, s.names = at, true, slices.Clip(slices.Clone(names))
	}
	return names, nil
}

// namesOf returns the names of the entries of a folder.
func namesOf(entries []fs.DirEntry) []string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

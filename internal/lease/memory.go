package lease

import (
	"maps"
	"sync"
)

// Memory excludes the tables of one process from each other. The zero value is ready
// for use.
type Memory struct {
	mu    sync.Mutex
	owner map[slot]*memoryLocks
}

// Table returns a table. Its leases exclude the leases of the other tables of m.
func (m *Memory) Table() *Table { return newTable(&memoryLocks{m}) }

// memoryLocks are the locks of one table.
type memoryLocks struct{ *Memory }

func (l *memoryLocks) try(at slot) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owner[at] != nil {
		return false, nil
	}
	if l.owner == nil {
		l.owner = make(map[slot]*memoryLocks)
	}
	l.owner[at] = l
	return true, nil
}

func (l *memoryLocks) unlock(at slot) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.owner, at)
	return nil
}

func (l *memoryLocks) held(at slot) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owner[at] != nil, nil
}

func (l *memoryLocks) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.owner, func(_ slot, owner *memoryLocks) bool { return owner == l })
	return nil
}

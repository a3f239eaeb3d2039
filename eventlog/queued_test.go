package eventlog

// Queued is how many appends of a session wait for their turn.
func (l *Log) Queued(session string) int {
	h := l.findHot(session)
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.queue)
}

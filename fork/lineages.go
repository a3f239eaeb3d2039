package fork

import (
	"context"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// Lineages checks the lineages of many sessions of a log. Where forks share
// ancestors, those are looked at once, so that all sessions of a store take
// little more than two events of each. It may be used by several at a time.
type Lineages struct {
	log *eventlog.Log

	mu    sync.Mutex
	sound map[string]bool // sessions whose lineage was found sound
}

// NewLineages makes a Lineages for the sessions as they are from now on.
func NewLineages(log *eventlog.Log) *Lineages {
	return &Lineages{log: log, sound: map[string]bool{}}
}

// Check makes sure that the sessions are there that a session was forked from,
// and have the events that it shares with them. What is wrong is a
// *LineageError; see Lineage.
func (l *Lineages) Check(ctx context.Context, session string) error {
	if l.known(session) {
		return nil
	}
	c := climb{log: l.log, session: session, known: l.known}
	if err := c.run(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sound[session] = true
	for i, a := range c.line {
		// What is further up was looked at only as far as this session needs it.
		if i+1 == len(c.line) || c.line[i+1].Seq == c.line[i+1].Fork.Seq {
			l.sound[a.Session] = true
		}
	}
	return nil
}

func (l *Lineages) known(session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sound[session]
}

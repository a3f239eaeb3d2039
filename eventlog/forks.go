package eventlog

import (
	"context"

	"github.com/convlog/convlog/event"
)

// ForkInfo is a direct fork of a session: the session and the newest seq it shares.
type ForkInfo struct {
	Session string
	Seq     int64
}

// ForkMap is all forks of a store.
type ForkMap struct {
	// ByParent lists the direct forks of each session.
	ByParent map[string][]ForkInfo
	// Unreadable are sessions so damaged that nobody can tell whether they are forks.
	Unreadable []string
}

// Forks lists the forks of all sessions, from the first event of each.
func (l *Log) Forks(ctx context.Context) (ForkMap, error) {
	m := ForkMap{ByParent: map[string][]ForkInfo{}}
	for info, err := range l.Sessions(ctx) {
		switch {
		case err != nil:
			return ForkMap{}, err
		case info.First.Seq == 0:
			m.Unreadable = append(m.Unreadable, info.ID)
			continue
		}
		f, forked, err := event.Decode[event.Fork](&info.First)
		if err != nil {
			return ForkMap{}, err
		}
		if forked {
			m.ByParent[f.Parent] = append(m.ByParent[f.Parent], ForkInfo{info.ID, f.Seq})
		}
	}
	return m, nil
}

// Sharing lists the direct forks of session that share its event at seq.
func (m *ForkMap) Sharing(session string, seq int64) (sharing []string) {
	for _, f := range m.ByParent[session] {
		if f.Seq >= seq {
			sharing = append(sharing, f.Session)
		}
	}
	return sharing
}

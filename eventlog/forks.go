package eventlog

import (
	"context"
	"slices"

	"github.com/convlog/convlog/event"
)

// ForkInfo is a direct fork of a session.
type ForkInfo struct {
	Session string // the fork
	Seq     int64  // the newest seq that the fork shares with its parent
}

// ForkMap is all forks of a store.
type ForkMap struct {
	// ByParent lists the direct forks of each session.
	ByParent map[string][]ForkInfo
	// Unreadable lists the sessions whose first event is unreadable: each may be a fork.
	Unreadable []string
}

// Forks returns all forks of the store. It reads the first event of each session.
//
// With sessions, it returns the forks of these sessions, the forks of their forks, and so
// on, and perhaps others. If the store is a Relater, it reads no other sessions, and
// Unreadable has only sessions that the store relates to them.
func (l *Log) Forks(ctx context.Context, sessions ...string) (ForkMap, error) {
	m := ForkMap{ByParent: map[string][]ForkInfo{}}
	if err := l.usable(ctx); err != nil {
		return m, err
	}
	if _, able := As[Relater](l.store); able && len(sessions) > 0 {
		return m, m.addBelow(ctx, l, sessions)
	}
	for info, err := range l.Sessions(ctx) {
		if err == nil {
			err = m.Add(&info)
		}
		if err != nil {
			return ForkMap{}, err
		}
	}
	return m, nil
}

// addBelow adds the forks of sessions, and their forks.
func (m *ForkMap) addBelow(ctx context.Context, l *Log, sessions []string) error {
	seen, done := map[string]bool{}, map[string]bool{}
	for queue := slices.Clone(sessions); len(queue) > 0; queue = queue[1:] {
		if done[queue[0]] {
			continue
		}
		done[queue[0]] = true
		for info, err := range l.Related(ctx, queue[0]) {
			if err == nil && !seen[info.ID] {
				err = m.Add(&info)
			}
			if err != nil {
				return err
			}
			seen[info.ID] = true
		}
		for _, f := range m.ByParent[queue[0]] {
			queue = append(queue, f.Session)
		}
	}
	return nil
}

// Add adds a session of a listing.
func (m *ForkMap) Add(info *SessionInfo) error {
	if info.First.Seq == 0 {
		m.Unreadable = append(m.Unreadable, info.ID)
		return nil
	}
	f, forked, err := event.Decode[event.Fork](&info.First)
	if err != nil || !forked {
		return err
	}
	if m.ByParent == nil {
		m.ByParent = map[string][]ForkInfo{}
	}
	m.ByParent[f.Parent] = append(m.ByParent[f.Parent], ForkInfo{info.ID, f.Seq})
	return nil
}

// Sharing lists the direct forks of session that share event seq with it.
func (m *ForkMap) Sharing(session string, seq int64) (sharing []string) {
	if m == nil {
		return nil
	}
	for _, f := range m.ByParent[session] {
		if f.Seq >= seq {
			sharing = append(sharing, f.Session)
		}
	}
	return sharing
}

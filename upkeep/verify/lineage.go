package verify

import (
	"context"
	"errors"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// lineages remembers sessions with sound ancestors, so that the forks of one parent do
// not check it again.
type lineages struct {
	mu    sync.Mutex
	sound map[string]bool
}

func (l *lineages) has(session string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sound[session]
}

func (l *lineages) add(sessions []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sound == nil {
		l.sound = map[string]bool{}
	}
	for _, session := range sessions {
		l.sound[session] = true
	}
}

// checkLineage checks that the ancestors of a fork have the events it shares. A
// defect of the fork's own parent was reported with its lines.
func (v *Verifier) checkLineage(ctx context.Context, report *Report) {
	if report.Parent == "" || report.Has(RuleFork) {
		return
	}
	sound, whole := []string{report.Session}, true
	for a, err := range v.log.Ancestors(ctx, report.Session) {
		if err == nil {
			err = v.log.CheckAncestor(ctx, a)
		}
		if err != nil {
			v.badLineage(ctx, report, err)
			return
		}
		if v.lineages.has(a.Session) {
			break
		}
		// From here on, sessions were checked only as far as this one needs them.
		if whole = whole && a.Through == a.Fork.Point(); !whole {
			sound = sound[:1]
			continue
		}
		sound = append(sound, a.Session)
	}
	v.lineages.add(sound)
}

// badLineage reports an error of the ancestors, unless the session itself was removed
// after the check began.
func (v *Verifier) badLineage(ctx context.Context, report *Report, err error) {
	if ctx.Err() != nil {
		return
	}
	if _, missing := v.log.Head(ctx, report.Session); errors.Is(missing, eventlog.ErrNotFound) {
		return
	}
	report.addDefect(eventlog.Defect{Session: report.Session, Seq: report.first, Offset: -1, Rule: RuleFork, Detail: err.Error()})
}

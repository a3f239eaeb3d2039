package codex

import (
	"context"
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// parent is the parent of the session, in the log.
type parent struct {
	ancestry
	id       string
	children map[string]*child // by call id
}

// openParent reads the parent; nil if the log lacks it, or it is not from Codex.
func openParent(ctx context.Context, log *eventlog.Log, h *header) (*parent, error) {
	id := h.parent()
	if event.CheckSessionID(id) != nil {
		return nil, nil
	}
	p := &parent{id: id}
	lines := ordinals{}
	known := session{children: map[string]*child{}}
	s, err := sessions.Open(ctx, log, id, func(e *event.Event) error {
		if err := p.add(e); err != nil {
			return err
		}
		if e.Type.Name() == event.SessionForked {
			known.resetForFork()
		}
		if h.base.Session == id && e.SessionID == id && lines.has(e, h.base.End) {
			p.forkPoint, p.hasMessage = e.Seq+int64(e.More()), true
		}
		c, ok, err := keptChild(e)
		if ok && err == nil {
			known.indexChild(&c, e.Seq)
		}
		return err
	})
	if err != nil || s.New() || !s.From(formatName) {
		return nil, err
	}
	p.children = known.children
	return p, nil
}

// call returns the call that started the sub-agent of a session, and the seq of the
// first event about it.
func (p *parent) call(session string) (callID string, seq int64) {
	for id, c := range p.children {
		if c.session == session {
			return id, c.seq
		}
	}
	return "", 0
}

// fork makes the session of h a fork of the parent at the fork point. created is false
// if the session exists already.
func (p *parent) fork(ctx context.Context, log *eventlog.Log, h *header) (created bool, err error) {
	reason := "forked in Codex"
	if h.spawnedBy != "" {
		reason = "a sub-agent"
	}
	_, err = fork.At(ctx, log, p.id, fork.AtSeq(p.forkPoint), fork.Options{
		ID: h.id, Label: h.labels["agent_nickname"], Reason: reason, Force: true, EventID: sessions.ForkID(h.id, h.at), Time: h.at,
	})
	if errors.Is(err, eventlog.ErrExists) {
		return false, nil
	}
	return err == nil, err
}

// checkBase says in the result that the session lacks the records of its parent that its file
// continues: it was imported before the parent. An import of both cannot add them.
func (im *importer) checkBase() error {
	parent := im.header.base.Session
	if parent == "" || im.s.ancestry.events != nil || im.lacksBase {
		return nil
	}
	for _, id := range []string{im.s.ID, parent} {
		if removed, err := im.s.Removed(im.ctx, id); removed || err != nil {
			return err
		}
	}
	im.lacksBase = true
	im.result.Incomplete(fmt.Sprintf("session %q lacks the records of session %q that it continues: remove it (logtool rm %s), and import the files of both sessions with --again",
		im.s.ID, parent, im.s.ID))
	return nil
}

package codex

import (
	"context"
	"errors"

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

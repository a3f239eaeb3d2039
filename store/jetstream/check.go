package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// Rules of the defects of Check; eventlog.Checker has their meaning.
const (
	ruleUnlisted  = "unlisted"
	ruleWatermark = "watermark"
	ruleLost      = "lost"
)

// Check implements eventlog.Checker. It compares the sessions with their watermarks, names the
// sessions that have lost all messages, and says how old the watermarks are. Fragments
// reports a session that has lost some messages.
func (s *Store) Check(ctx context.Context) iter.Seq2[eventlog.Defect, error] {
	return func(yield func(eventlog.Defect, error) bool) {
		l, err := s.reading(ctx)
		if l != nil && err == nil {
			c := checking{layout: l, marks: map[string]watermark{}, shards: map[*stream]*shardCheck{}, yield: yield}
			err = c.run(ctx)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(eventlog.Defect{}, wrap("check the streams", err))
		}
	}
}

// checking is one run of Check.
type checking struct {
	*layout
	marks  map[string]watermark // the stored ones that are not compared yet
	shards map[*stream]*shardCheck
	yield  func(eventlog.Defect, error) bool
}

// shardCheck is the sum of the watermarks of a shard.
type shardCheck struct {
	newest         time.Time // the time of the newest watermark
	newer, without int       // sessions with events after their watermark, and without one
}

func (c *checking) run(ctx context.Context) error {
	if err := c.lostMessages(ctx); err != nil {
		return err
	}
	if id, err := c.identityOf(ctx); err != nil {
		return err
	} else if id == "" {
		if err := c.pass(eventlog.Defect{Path: "stream " + c.control.name, Rule: ruleLost, Detail: errNoIdentity.Error()}); err != nil {
			return err
		}
	}
	for _, st := range c.layout.shards {
		err := c.damage(st.lostControl(ctx))
		if err == nil {
			err = c.readMarks(ctx, st)
		}
		if err != nil {
			return err
		}
	}
	for one, err := range c.tips(ctx, eventlog.Part{}) {
		if err == nil {
			err = c.compare(ctx, &one)
		}
		if err != nil {
			return err
		}
	}
	if err := c.unlisted(ctx); err != nil {
		return err
	}
	return c.ages(ctx)
}

func (c *checking) pass(d eventlog.Defect) error {
	d.Offset = -1
	if !c.yield(d, nil) {
		return errStop
	}
	return nil
}

// damage reports damage, and returns another error.
func (c *checking) damage(err error) error {
	var corrupt *eventlog.CorruptError
	if errors.As(err, &corrupt) {
		return c.pass(eventlog.Defect{Path: corrupt.Path, Rule: ruleLost, Detail: corrupt.Cause.Error()})
	}
	return err
}

// lostMessages reports the messages that the servers know to be lost.
func (c *checking) lostMessages(ctx context.Context) error {
	for _, st := range c.all() {
		info, err := st.info(ctx, nil)
		if err != nil {
			return st.store.failure(err)
		}
		if lost := info.State.Lost; lost != nil && len(lost.Msgs) > 0 {
			err = c.pass(eventlog.Defect{Path: "stream " + st.name, Rule: ruleLost, Detail: fmt.Sprintf("the server has lost %d messages, from message %d on", len(lost.Msgs), slices.Min(lost.Msgs))})
		}
		if err == nil {
			err = c.damage(st.behind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readMarks reads the watermarks of a shard.
func (c *checking) readMarks(ctx context.Context, st *stream) error {
	sum := &shardCheck{}
	c.shards[st] = sum
	return c.control.each(ctx, st.watermarkOf("*"), 1, func(m *message) error {
		if m.time().After(sum.newest) {
			sum.newest = m.time()
		}
		session, ok := st.decodeLast(m.subject)
		w, err := parseWatermark(m)
		if err == nil && ok {
			c.marks[session] = w
			return nil
		}
		return c.pass(eventlog.Defect{Session: session, Path: c.control.place(m.at), Rule: ruleLost, Detail: errWatermark.Error()})
	})
}

// compare compares a session with its watermark.
func (c *checking) compare(ctx context.Context, one *listed) error {
	w, marked := c.marks[one.session]
	delete(c.marks, one.session)
	sum, f := c.shards[one.stream], one.tip.frame
	if one.tip.err != nil {
		return nil
	}
	if f.watermark > w.number {
		if missing, err := c.lacksMark(ctx, one, f.watermark); missing || err != nil {
			return err
		}
	}
	switch {
	case !marked:
		sum.without++
	case f.at > w.at:
		sum.newer++
	}
	return nil
}

// lacksMark reports a session whose watermark is not in the control stream.
func (c *checking) lacksMark(ctx context.Context, one *listed, number uint64) (bool, error) {
	w, err := one.stream.watermark(ctx, encodeName(one.session))
	if err != nil || w != nil && w.number >= number {
		return false, err
	}
	if t, err := one.stream.tip(ctx, one.session); err != nil || t.frame == nil || t.frame.watermark < number {
		return false, err // removed meanwhile
	}
	return true, c.pass(eventlog.Defect{Session: one.session, Path: c.control.place(number), Rule: ruleLost,
		Detail: "the control stream has lost the watermark of the session; an append or repair stores a new one"})
}

// unlisted names the sessions that have a watermark and no messages.
func (c *checking) unlisted(ctx context.Context) error {
	for _, session := range slices.Sorted(maps.Keys(c.marks)) {
		st := c.shard(session)
		w := c.marks[session]
		t, err := st.newestTip(ctx, session)
		if err == nil {
			t, err = st.compareWatermark(ctx, session, t, &w)
		}
		if err == nil && t.lost != nil && t.frame == nil {
			err = c.pass(eventlog.Defect{Session: session, Path: "stream " + st.name, Rule: ruleUnlisted})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ages says how old the watermarks of each shard are.
func (c *checking) ages(ctx context.Context) error {
	for _, st := range c.layout.shards {
		info, err := st.info(ctx, nil)
		if err != nil {
			return st.store.failure(err)
		}
		sum := c.shards[st]
		if info.State.LastSeq == 0 && sum.newest.IsZero() {
			continue
		}
		detail := "no watermark: a loss of the newest messages is not found"
		if !sum.newest.IsZero() {
			detail = fmt.Sprintf("the newest watermark is %s old", info.TimeStamp.Sub(sum.newest).Round(time.Second))
		}
		if sum.newer+sum.without > 0 {
			detail += fmt.Sprintf("; sessions with messages after their watermark: %d, sessions without one: %d", sum.newer, sum.without)
		}
		if err := c.pass(eventlog.Defect{Path: "stream " + st.name, Rule: ruleWatermark, Detail: detail}); err != nil {
			return err
		}
	}
	return nil
}

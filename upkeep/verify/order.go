package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/upkeep/internal/keptsum"
)

// checker checks the pieces of one session's storage in their order.
type checker struct {
	v      *Verifier
	report Report
	at     struct { // the piece being checked
		Path   string
		Offset int64
	}
	noNewline bool // of the last line

	begun   bool
	from    int64 // the seq of the first event
	last    line.Sequence
	ids     seenIDs
	gap     gap
	foreign bool // the last line was of another session

	damaged bool                     // a piece could not be read
	erased  map[int64]jsontext.Value // what redaction kept of the erased events
	named   map[int64]bool           // events that redacted events name
	lost    map[int64]bool           // lost events
	missing map[event.Digest]bool
	indexed []int64 // seqs of the snapshots and the head_moved events
	talk    conversation
	runs    runs

	inspector *inspector
}

// gap is the pieces between the last event and the next that are no events.
type gap struct {
	pieces int64
	events int64 // how many events they may have been
}

func (v *Verifier) checker(session string) *checker {
	return &checker{v: v, report: Report{Session: session}, erased: map[int64]jsontext.Value{},
		named: map[int64]bool{}, lost: map[int64]bool{}, missing: map[event.Digest]bool{}, inspector: v.inspector()}
}

func (v *Verifier) inspector() *inspector {
	return &inspector{log: v.log, engine: v.engine, blobs: &v.blobs}
}

// event checks an event that is in memory only.
func (c *checker) event(ctx context.Context, e *event.Event) error {
	var n inspection
	if err := c.inspector.inspect(ctx, e, &n); err != nil {
		return err
	}
	return c.piece(ctx, &eventlog.Fragment{Event: *e, Offset: -1}, &n)
}

// piece checks the next piece. The error is not for damage.
func (c *checker) piece(ctx context.Context, f *eventlog.Fragment, n *inspection) error {
	e, noNewline := &f.Event, c.noNewline
	if noNewline {
		c.missingNewline(f)
	}
	c.at.Path, c.at.Offset = f.Path, f.Offset
	c.noNewline = f.Err == nil && f.Offset >= 0 && f.Bytes == int64(len(e.Line()))
	switch {
	case f.Err != nil:
		c.foreign = false
		c.addUnreadable(f, noNewline)
		return nil
	case e.SessionID != c.report.Session:
		c.addForeign(e)
		return nil
	}
	c.foreign = false
	c.report.Events++
	c.report.Bytes += int64(len(e.Line())) + 1
	if e.Type.Name() == event.ProjectionSnapshotted {
		c.report.Snapshots++
	}
	c.faults(e, n)
	placed, err := c.place(ctx, f, n)
	if err != nil || !placed {
		return err
	}
	if engine.IsIndexed(e.Type) {
		c.indexed = append(c.indexed, e.Seq)
	}
	c.gap = gap{}
	c.erasure(ctx, e, n)
	c.runs.event(c, e, n)
	return c.talk.event(ctx, c, e, n)
}

var errNoNewline = errors.New("its newline is missing")

// missingNewline reports a line without newline that another piece follows.
func (c *checker) missingNewline(next *eventlog.Fragment) {
	c.damaged = true
	if next.Err == nil {
		c.defect(c.last.Seq, ruleLine, errNoNewline.Error())
	} else {
		c.defect(c.last.Seq, ruleLine, fmt.Sprintf("%v; at byte %d: %v", errNoNewline, next.Offset, next.Err))
	}
}

func (c *checker) defect(seq int64, rule, detail string) {
	c.report.addDefect(c.finding(seq, rule, detail))
}

func (c *checker) note(seq int64, rule, detail string) {
	c.report.addNote(c.finding(seq, rule, detail))
}

func (c *checker) finding(seq int64, rule, detail string) eventlog.Defect {
	return eventlog.Defect{Session: c.report.Session, Seq: seq, Path: c.at.Path, Offset: c.at.Offset, Rule: rule, Detail: detail}
}

// due is the seq that comes next; 0 if it is unknown.
func (c *checker) due() int64 {
	if !c.begun {
		return 0
	}
	return c.last.Seq + 1 + c.gap.pieces
}

// leastLine is about the length of the shortest line.
const leastLine = 256

// addUnreadable notes bytes that are no event. reported says that they were reported
// with the line before, whose newline is missing.
func (c *checker) addUnreadable(f *eventlog.Fragment, reported bool) {
	c.damaged = true
	seq := cmp.Or(f.Seq, c.due())
	c.gap.pieces++
	c.gap.events += max(1, f.Bytes/leastLine)
	if reported {
		return
	}
	rule := ruleLine
	switch {
	case errors.Is(f.Err, event.ErrVersion):
		rule = RuleVersion
	case errors.Is(f.Err, line.ErrCRC):
		rule = ruleCRC
	}
	c.defect(seq, rule, f.Err.Error())
}

// addForeign notes a foreign line, of another session. Consecutive lines are one defect.
func (c *checker) addForeign(e *event.Event) {
	c.damaged = true
	if !c.foreign {
		c.defect(c.due(), ruleSession, fmt.Sprintf("%v: %q", line.ErrSession, line.Clip(e.SessionID)))
	}
	c.foreign = true
	c.gap.pieces++
	c.gap.events++
}

// faults reports the faults of an inspection. It reports each bad blob once.
func (c *checker) faults(e *event.Event, n *inspection) {
	for _, name := range n.broken {
		c.note(e.Seq, string(name), "broken by an import")
	}
	for _, f := range n.faults {
		if f.blob == "" || !c.missing[f.blob] {
			c.defect(e.Seq, f.rule, f.detail)
		}
		if f.blob != "" {
			c.missing[f.blob] = true
		}
	}
}

// place checks that an event follows the events before it. placed is false for an
// event that does not belong there.
func (c *checker) place(ctx context.Context, f *eventlog.Fragment, n *inspection) (placed bool, err error) {
	e := &f.Event
	if f.Seq > 0 && f.Seq != e.Seq {
		c.defect(f.Seq, ruleSeq, fmt.Sprintf("the line of seq %d is stored there", e.Seq))
		c.gap.events++
		c.damaged = true
		return false, nil
	}
	if c.begun && e.Seq <= c.last.Seq {
		if seq, known := c.ids.find(e.ID); known && seq == e.Seq {
			c.defect(c.due(), ruleSeq, fmt.Sprintf("event %d is stored there again", e.Seq))
			return false, nil
		}
	}
	if first, twice := c.ids.add(e.ID, e.Seq); twice {
		c.defect(e.Seq, ruleDuplicate, fmt.Sprintf("event %d has the same id, %s", first, e.ID))
	}
	if !c.begun {
		c.from = e.Seq
		err = c.first(ctx, e, n)
	} else if placed = c.follows(e, n); !placed {
		return false, nil
	}
	c.begun, c.last = true, line.Sequence{Seq: e.Seq, Hash: line.Hash(e.Hash()), More: int32(e.More())}
	return true, err
}

// follows checks that an event follows the last one.
func (c *checker) follows(e *event.Event, n *inspection) (placed bool) {
	switch gap := e.Seq - c.last.Seq - 1; {
	case gap < 0:
		c.defect(c.due(), ruleSeq, fmt.Sprintf("%v: event %d is stored there", line.ErrGap, e.Seq))
		return false
	case gap > c.gap.events:
		c.damaged = true
		c.defect(c.due(), ruleSeq, fmt.Sprintf("%v: event %d is stored there", line.ErrGap, e.Seq))
		return true
	case gap > 0: // the missing events were reported as unreadable
		return true
	}
	last := c.last
	switch err := last.Next(e.Seq, int32(e.More()), n.link, line.Hash(e.Hash())); {
	case errors.Is(err, line.ErrChain):
		c.defect(e.Seq, ruleChain, err.Error())
	case err != nil:
		c.defect(e.Seq, ruleAppend, err.Error())
	}
	return true
}

var errFirst = errors.New("the first event has neither seq 1 nor the type session_forked")

// first checks how the session begins.
func (c *checker) first(ctx context.Context, e *event.Event, n *inspection) error {
	if n.facts.Fork != nil {
		return c.forked(ctx, e, n)
	}
	switch {
	case e.Seq != 1 && c.gap.pieces > 0: // reported as unreadable
	case e.Seq != 1:
		c.damaged = true
		c.defect(e.Seq, ruleSeq, errFirst.Error())
	case n.link.After(line.Hash{}) != line.Hash(e.Hash()):
		c.defect(e.Seq, ruleChain, line.ErrChain.Error())
	}
	return nil
}

func (c *checker) forked(ctx context.Context, e *event.Event, n *inspection) error {
	f := n.facts.Fork
	switch {
	case e.Seq != f.Seq+1:
		c.defect(e.Seq, ruleSeq, fmt.Sprintf("%v: it forks event %d", line.ErrGap, f.Seq))
	case n.link.After(line.Hash(f.Hash)) != line.Hash(e.Hash()):
		c.defect(e.Seq, ruleChain, line.ErrChain.Error())
	}
	c.report.Parent = f.Parent
	c.talk.inherit(f.Seq)
	c.runs.inherit()
	err := c.v.engine.CheckFork(ctx, e.SessionID, f)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		c.defect(e.Seq, RuleFork, err.Error())
	}
	return nil
}

// erasure notes erased events, and checks the events that a redacted event names.
func (c *checker) erasure(ctx context.Context, e *event.Event, n *inspection) {
	if n.erased {
		c.erased[e.Seq] = n.kept
	}
	if e.Type.Name() == event.Lost {
		c.lost[e.Seq] = true
	}
	if n.redaction == nil {
		return
	}
	for _, seq := range n.redaction.Seqs {
		c.named[seq] = true
		if seq < c.from {
			continue // the parent's
		}
		if c.erased[seq] == nil && !c.lost[seq] && !c.damaged && !c.erasedNow(ctx, seq) {
			c.defect(e.Seq, ruleRedaction, fmt.Sprintf("it names event %d, whose content is still there", seq))
		}
	}
	c.keptMembers(e, n.redaction)
}

// keptMembers compares the members that a redaction kept with the redacted event.
func (c *checker) keptMembers(e *event.Event, note *event.RedactionNote) {
	if note.Kept == "" || c.damaged {
		return
	}
	h := keptsum.New()
	for _, seq := range note.Seqs {
		if seq < c.from {
			continue
		}
		if c.erased[seq] == nil {
			return // lost, or reported already
		}
		h.Add(c.erased[seq])
	}
	if h.Digest() != note.Kept {
		c.defect(e.Seq, ruleRedaction, "the members that it kept of the erased events were changed afterwards")
	}
}

// erasedNow reports whether an event was redacted after it was read.
func (c *checker) erasedNow(ctx context.Context, seq int64) bool {
	for e, err := range c.v.log.Store().Read(ctx, c.report.Session, eventlog.Span{From: seq, To: seq}) {
		return err == nil && e.Redacted()
	}
	return false
}

// finish makes the checks at the end of the session.
func (c *checker) finish() {
	c.report.first = c.from
	c.report.Head = event.Head{Seq: c.last.Seq, Hash: event.Hash(c.last.Hash)}
	if err := c.last.End(); err != nil && !c.damaged {
		c.defect(c.last.Seq, ruleAppend, err.Error())
	}
	if c.damaged {
		return
	}
	c.at.Offset = -1
	c.runs.finish(c)
	for _, seq := range c.unnamed() {
		if c.lostAfter(seq) {
			c.note(seq, ruleRedaction, "the content is erased; the event that says why was probably lost")
		} else {
			c.defect(seq, ruleRedaction, "the content is erased, but no redacted event names it")
		}
	}
}

// unnamed lists the erased events that no redacted event names.
func (c *checker) unnamed() (seqs []int64) {
	for _, seq := range slices.Sorted(maps.Keys(c.erased)) {
		if !c.named[seq] {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// lostAfter reports whether an event after seq was lost.
func (c *checker) lostAfter(seq int64) bool {
	for lost := range c.lost {
		if lost > seq {
			return true
		}
	}
	return false
}

package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// verifier checks the events of one session in the order they stand in.
type verifier struct {
	log    *Log
	report Report
	at     struct { // what is being looked at
		Path   string
		Offset int64
	}
	glued bool // the last line has no newline

	begun bool
	from  int64 // the seq of the first event
	last  Head
	more  int // how many events of its append are to follow the last one
	ids   seenIDs
	gap   gap
	alien bool // the last line was of another session

	damaged bool // something could not be read
	erased  map[int64]bool
	named   map[int64]bool // events that redacted events name
	lost    map[int64]bool // lost events
	missing map[Digest]bool
	talk    talk

	inspector *inspector
}

// gap is what stands between the last event and the next and is none.
type gap struct {
	pieces int64
	events int64 // how many events may have been there
}

func (l *Log) verifier(session string) *verifier {
	return &verifier{log: l, report: Report{Session: session}, erased: map[int64]bool{},
		named: map[int64]bool{}, lost: map[int64]bool{}, missing: map[Digest]bool{},
		inspector: &inspector{log: l, blobs: new(blobChecks)}}
}

// event is take for an event that no storage has.
func (v *verifier) event(ctx context.Context, e *Event) error {
	var n inspection
	if err := v.inspector.inspect(ctx, e, &n); err != nil {
		return err
	}
	return v.take(ctx, &Fragment{Event: *e, Offset: -1}, &n)
}

// take checks the piece that comes next. The error is for what is no damage.
func (v *verifier) take(ctx context.Context, f *Fragment, n *inspection) error {
	e, glued := &f.Event, v.glued
	if glued {
		v.line(f)
	}
	v.at.Path, v.at.Offset = f.Path, f.Offset
	v.glued = f.Err == nil && f.Offset >= 0 && f.Bytes == int64(len(e.Line()))
	switch {
	case f.Err != nil:
		v.alien = false
		v.unreadable(f, glued)
		return nil
	case e.SessionID != v.report.Session:
		v.foreign(e)
		return nil
	}
	v.alien = false
	v.report.Events++
	v.report.Bytes += int64(len(e.Line())) + 1
	if e.Type.Name() == ProjectionSnapshotted {
		v.report.Snapshots++
	}
	v.faults(e, n)
	placed, err := v.place(ctx, f, n)
	if err != nil || !placed {
		return err
	}
	v.gap = gap{}
	v.erasure(ctx, e, n)
	return v.talk.take(ctx, v, e, n)
}

var errGlued = errors.New("its newline is missing")

// line reports a line that something else stands behind.
func (v *verifier) line(behind *Fragment) {
	v.damaged = true
	if behind.Err == nil {
		v.defect(v.last.Seq, "line", errGlued.Error())
	} else {
		v.defect(v.last.Seq, "line", fmt.Sprintf("%v; at byte %d: %v", errGlued, behind.Offset, behind.Err))
	}
}

func (v *verifier) defect(seq int64, rule, detail string) {
	v.report.addDefect(Defect{v.report.Session, seq, v.at.Path, v.at.Offset, rule, detail})
}

func (v *verifier) note(seq int64, rule, detail string) {
	v.report.addNote(Defect{v.report.Session, seq, v.at.Path, v.at.Offset, rule, detail})
}

// due is the seq that comes next; 0 if that is not known.
func (v *verifier) due() int64 {
	if !v.begun {
		return 0
	}
	return v.last.Seq + 1 + v.gap.pieces
}

// unreadable takes in bytes that are no event. told says that they were
// reported with the line they stand on.
func (v *verifier) unreadable(f *Fragment, told bool) {
	v.damaged = true
	seq := cmp.Or(f.Seq, v.due())
	v.gap.pieces++
	v.gap.events += max(1, f.Bytes/leastLine)
	if told {
		return
	}
	rule := "line"
	switch {
	case errors.Is(f.Err, ErrVersion):
		rule = "version"
	case errors.Is(f.Err, errCRC):
		rule = "crc"
	}
	v.defect(seq, rule, f.Err.Error())
}

// foreign takes in a line of another session. Lines in a row are one defect.
func (v *verifier) foreign(e *Event) {
	v.damaged = true
	if !v.alien {
		v.defect(v.due(), "session", fmt.Sprintf("%v: %q", errWrongSession, clip(e.SessionID)))
	}
	v.alien = true
	v.gap.pieces++
	v.gap.events++
}

// faults reports what inspecting an event has found. A blob is reported once.
func (v *verifier) faults(e *Event, n *inspection) {
	for _, name := range n.broken {
		v.note(e.Seq, name, "broken by an import")
	}
	for _, f := range n.faults {
		if f.blob == "" || !v.missing[f.blob] {
			v.defect(e.Seq, f.rule, f.detail)
		}
		if f.blob != "" {
			v.missing[f.blob] = true
		}
	}
}

// place checks that an event follows those before it. One that does not belong
// where it stands is not placed.
func (v *verifier) place(ctx context.Context, f *Fragment, n *inspection) (placed bool, err error) {
	e := &f.Event
	if f.Seq > 0 && f.Seq != e.Seq {
		v.defect(f.Seq, "seq", fmt.Sprintf("the line of seq %d stands there", e.Seq))
		v.gap.events++
		v.damaged = true
		return false, nil
	}
	if v.begun && e.Seq <= v.last.Seq {
		if seq, known := v.ids.find(e.ID); known && seq == e.Seq {
			v.defect(v.due(), "seq", fmt.Sprintf("event %d stands there again", e.Seq))
			return false, nil
		}
	}
	if first, twice := v.ids.add(e.ID, e.Seq); twice {
		v.defect(e.Seq, "duplicate", fmt.Sprintf("event %d has the same id, %s", first, e.ID))
	}
	if !v.begun {
		v.from = e.Seq
		err = v.first(ctx, e, n)
	} else if placed = v.follows(e, n); !placed {
		return false, nil
	}
	v.begun, v.last, v.more = true, Head{e.Seq, n.hash}, e.More()
	return true, err
}

// follows checks that an event follows the last one.
func (v *verifier) follows(e *Event, n *inspection) (placed bool) {
	switch gap := e.Seq - v.last.Seq - 1; {
	case gap < 0:
		v.defect(v.due(), "seq", fmt.Sprintf("%v: event %d stands there", errGap, e.Seq))
		return false
	case gap > v.gap.events:
		v.damaged = true
		v.defect(v.due(), "seq", fmt.Sprintf("%v: event %d stands there", errGap, e.Seq))
	case gap > 0: // what cannot be read was reported
	case n.link.after(v.last.Hash) != n.hash:
		v.defect(e.Seq, "chain", errChain.Error())
	case v.more > 0 && e.More() != v.more-1:
		v.defect(e.Seq, "append", errCountdown.Error())
	}
	return true
}

// first checks how the session begins.
func (v *verifier) first(ctx context.Context, e *Event, n *inspection) error {
	if fork := n.facts.fork; fork != nil {
		return v.forked(ctx, e, n, fork)
	}
	switch {
	case e.Seq != 1 && v.gap.pieces > 0: // reported
	case e.Seq != 1:
		v.damaged = true
		v.defect(e.Seq, "seq", errFirst.Error())
	case n.link.after(Hash{}) != n.hash:
		v.defect(e.Seq, "chain", errChain.Error())
	}
	return nil
}

func (v *verifier) forked(ctx context.Context, e *Event, n *inspection, f *Fork) error {
	switch {
	case e.Seq != f.Seq+1:
		v.defect(e.Seq, "seq", fmt.Sprintf("%v: it forks event %d", errGap, f.Seq))
	case n.link.after(f.Hash) != n.hash:
		v.defect(e.Seq, "chain", errChain.Error())
	}
	v.report.Parent = f.Parent
	v.talk.inherit(f.Seq)
	err := v.log.checkFork(ctx, e.SessionID, f)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		v.defect(e.Seq, "fork", err.Error())
	}
	return nil
}

// erasure takes in whose content is gone, and who says so.
func (v *verifier) erasure(ctx context.Context, e *Event, n *inspection) {
	if n.erased {
		v.erased[e.Seq] = true
	}
	if e.Type.Name() == Lost {
		v.lost[e.Seq] = true
	}
	if n.note == nil {
		return
	}
	for _, seq := range n.note.Seqs {
		v.named[seq] = true
		if seq < v.from {
			continue // it is the parent's
		}
		if !v.erased[seq] && !v.lost[seq] && !v.damaged && !v.erasedNow(ctx, seq) {
			v.defect(e.Seq, "redaction", fmt.Sprintf("it names event %d, whose content is still there", seq))
		}
	}
}

// erasedNow reports whether an event was redacted after it was read.
func (v *verifier) erasedNow(ctx context.Context, seq int64) bool {
	for e, err := range v.log.store.Read(ctx, v.report.Session, Span{From: seq, To: seq}) {
		return err == nil && e.Redacted()
	}
	return false
}

// finish checks what only the end shows.
func (v *verifier) finish() {
	v.report.Head = v.last
	if v.more > 0 && !v.damaged {
		v.defect(v.last.Seq, "append", errUnended.Error())
	}
	if v.damaged {
		return
	}
	v.at.Offset = -1
	for _, seq := range v.unnamed() {
		if v.lostBehind(seq) {
			v.note(seq, "redaction", "the content is gone; the event that says why was probably lost")
		} else {
			v.defect(seq, "redaction", "the content is gone, but no redacted event names it")
		}
	}
}

// unnamed lists the erased events that no redacted event names.
func (v *verifier) unnamed() (seqs []int64) {
	for _, seq := range slices.Sorted(maps.Keys(v.erased)) {
		if !v.named[seq] {
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// lostBehind reports whether an event behind seq was lost.
func (v *verifier) lostBehind(seq int64) bool {
	for lost := range v.lost {
		if lost > seq {
			return true
		}
	}
	return false
}

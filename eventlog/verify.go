package eventlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/oklog/ulid/v2"
)

// Report is what Verify found in one session.
type Report struct {
	Session string
	// Events and Bytes count the session's own lines that were read.
	Events, Bytes int64
	Head          Head
	// Defects are damage. Notes are what is worth knowing and no damage: rules of
	// conversation that an import broke and marked, and the torn tail that an
	// unfinished write left.
	Defects, Notes []Defect
}

// Defect locates something wrong.
type Defect struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq,omitzero"`
	// Path and Offset locate the line where the store has such a place; Offset
	// is -1 where it does not.
	Path   string `json:"path,omitzero"`
	Offset int64  `json:"offset"`
	// Rule is a short name: crc, chain, seq, append, payload, blob, tree, duplicate,
	// redaction, fork, version, torn, or that of a broken rule.
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

func (d Defect) String() string {
	where := fmt.Sprintf("session %q", d.Session)
	if d.Seq > 0 {
		where += fmt.Sprintf(" event %d", d.Seq)
	}
	if d.Path != "" {
		where += " (" + d.Path
		if d.Offset >= 0 {
			where += fmt.Sprintf(" byte %d", d.Offset)
		}
		where += ")"
	}
	return fmt.Sprintf("%s: %s: %s", where, d.Rule, d.Detail)
}

// Verify reads a session's own events and checks every crc, the chain, seqs and
// appends, payloads, ids, blobs and redactions, a fork's parent, and what
// stands behind the last complete append. Damage is reported, not returned as
// an error; the error is for a missing session and for what kept Verify from
// looking.
func (l *Log) Verify(ctx context.Context, session string) (Report, error) {
	if err := l.readable(ctx, session); err != nil {
		return Report{}, err
	}
	v := l.verifier(session)
	err := v.read(ctx)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return Report{}, err
	}
	torn, listing := v.tail(ctx)
	if err = cmp.Or(listing, err); err != nil && (listing != nil || !torn) {
		return Report{}, err
	}
	return v.report, nil
}

// TornTails lists what unfinished writes have left behind the last complete
// appends of all sessions, also of those that have none and so are not listed
// by Sessions. An error beside a TornTail that names a session is of that
// session alone, and the others follow.
func (l *Log) TornTails(ctx context.Context) iter.Seq2[TornTail, error] {
	lister, ok := As[TailLister](l.store)
	if !ok {
		return func(func(TornTail, error) bool) {}
	}
	return lister.TornTails(ctx, "")
}

type verifier struct {
	log    *Log
	report Report
	order  continuity
	ids    map[ulid.ULID]int64
	blobs  map[Digest]bool // checked, and whether it was sound
	erased map[int64]bool  // redacted events
	named  map[int64]bool  // events that redacted events name
	lost   map[int64]bool  // lost events
}

func (l *Log) verifier(session string) *verifier {
	return &verifier{log: l, report: Report{Session: session}, order: continuity{session: session}, ids: map[ulid.ULID]int64{},
		blobs: map[Digest]bool{}, erased: map[int64]bool{}, named: map[int64]bool{}, lost: map[int64]bool{}}
}

// read checks the session's events.
func (v *verifier) read(ctx context.Context) error {
	for e, err := range v.log.store.Read(ctx, v.report.Session, Span{}) {
		if err != nil {
			if done := v.damage(err); done != nil {
				return done
			}
			break
		}
		if err := v.event(ctx, &e); err != nil {
			return err
		}
	}
	if err := v.namedSince(ctx); err != nil {
		return err
	}
	v.finish()
	return v.end(ctx)
}

// end reads the newest event from the other end, as appends do: a store may
// find it in another way.
func (v *verifier) end(ctx context.Context) error {
	if v.report.Events == 0 || len(v.report.Defects) > 0 {
		return nil
	}
	if _, err := v.log.newest(ctx, v.report.Session); err != nil && !errors.Is(err, ErrNotFound) {
		return v.damage(err)
	}
	return nil
}

// tail reports what stands behind the last complete append.
func (v *verifier) tail(ctx context.Context) (torn bool, err error) {
	lister, ok := As[TailLister](v.log.store)
	if !ok {
		return false, nil
	}
	for t, err := range lister.TornTails(ctx, v.report.Session) {
		if err != nil {
			return torn, err
		}
		torn = true
		d := Defect{v.report.Session, 0, t.Path, t.Offset, "torn", ""}
		if t.Whole {
			d.Detail = fmt.Sprintf("damage in the last append, or a hole before it: %d bytes are not shown; the next append saves them and cuts them off", t.Bytes)
			v.report.Defects = append(v.report.Defects, d)
		} else {
			d.Detail = fmt.Sprintf("an unfinished write left %d bytes; the next append saves them and cuts them off", t.Bytes)
			v.report.Notes = append(v.report.Notes, d)
		}
	}
	return torn, nil
}

// damage takes in an error of the store; an error that is not damage is
// returned.
func (v *verifier) damage(err error) error {
	var corrupt *CorruptError
	var version *VersionError
	switch {
	case errors.As(err, &corrupt):
		rule := "crc"
		if !errors.Is(err, errCRC) {
			rule = "line"
		}
		v.report.Defects = append(v.report.Defects, Defect{v.report.Session, corrupt.Seq, corrupt.Path, corrupt.Offset,
			rule, corrupt.Cause.Error()})
	case errors.As(err, &version):
		v.defect(0, "version", version.Error())
	default:
		return err
	}
	return nil
}

func (v *verifier) defect(seq int64, rule, detail string) {
	v.report.Defects = append(v.report.Defects, Defect{v.report.Session, seq, "", -1, rule, detail})
}

// event checks one event. The error is for what is no damage.
func (v *verifier) event(ctx context.Context, e *Event) error {
	if v.report.Events == 0 {
		if err := v.first(ctx, e); err != nil {
			return err
		}
	}
	v.report.Events++
	v.report.Bytes += int64(len(e.Line())) + 1
	if err := v.order.next(e); err != nil {
		v.breach(e, err)
	}
	if seq, twice := v.ids[e.ID]; twice {
		v.defect(e.Seq, "duplicate", fmt.Sprintf("event %d has the same id, %s", seq, e.ID))
	}
	v.ids[e.ID] = e.Seq
	v.notes(e)
	if e.Type.Name() == Lost {
		v.lost[e.Seq] = true
	}
	if err := e.checkForm(); err != nil {
		v.defect(e.Seq, "payload", err.Error())
	}
	if e.Redacted() {
		v.erased[e.Seq] = true
		return nil
	}
	if err := v.content(ctx, e); err != nil {
		return err
	}
	return nil
}

// breach reports a break of continuity and goes on from e.
func (v *verifier) breach(e *Event, err error) {
	rule := "seq"
	switch {
	case errors.Is(err, errChain):
		rule = "chain"
	case errors.Is(err, errCountdown):
		rule = "append"
	case errors.Is(err, errWrongSession):
		rule = "session"
	}
	v.defect(e.Seq, rule, errors.Unwrap(err).Error())
	v.order.last, v.order.more = e.Head(), e.More()
}

// first checks how the session begins.
func (v *verifier) first(ctx context.Context, e *Event) error {
	if e.Type != SessionForked {
		if e.Seq != 1 {
			v.defect(e.Seq, "seq", errFirst.Error())
			v.order.last = Head{Seq: e.Seq - 1}
		}
		return nil
	}
	f, _, err := e.Fork()
	if err != nil {
		v.defect(e.Seq, "payload", err.Error())
		return nil
	}
	v.order.last = Head{Seq: f.Seq, Hash: f.Hash}
	err = v.log.checkFork(ctx, e.SessionID, &f)
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		v.defect(e.Seq, "fork", err.Error())
	}
	return nil
}

// content checks payload and blobs.
func (v *verifier) content(ctx context.Context, e *Event) error {
	for _, d := range e.Blobs() {
		sound, err := v.blob(ctx, e, d)
		if err != nil {
			return err
		}
		if spilled, _, _ := e.Spilled(); spilled == d && !sound {
			return nil
		}
	}
	if err := v.log.fetch(ctx, e); err != nil {
		return err
	}
	if e.Redacted() {
		v.erased[e.Seq] = true
		return nil
	}
	if err := checkData(e.Data); err != nil {
		v.defect(e.Seq, "payload", err.Error())
		return nil
	}
	v.payload(e)
	return nil
}

// blob checks a blob of e, once. One that is gone because e was redacted
// meanwhile is sound, and e what is left of it.
func (v *verifier) blob(ctx context.Context, e *Event, d Digest) (sound bool, err error) {
	if sound, known := v.blobs[d]; known {
		return sound, nil
	}
	_, err = v.log.readBlob(ctx, d)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	if errors.Is(err, ErrBlobNotFound) && v.log.erasedSince(ctx, e) {
		return true, nil
	}
	v.blobs[d] = err == nil
	if err != nil {
		v.defect(e.Seq, "blob", err.Error())
	}
	return err == nil, nil
}

func (v *verifier) payload(e *Event) {
	p, err := e.checkPayload()
	if r, ok := p.(RedactionNote); ok {
		v.redacts(e, r)
	}
	var version *VersionError
	switch {
	case errors.As(err, &version):
		v.defect(e.Seq, "version", err.Error())
	case errors.Is(err, errUnlisted):
		v.defect(e.Seq, "blob", err.Error())
	case errors.Is(err, errMoveTo):
		v.defect(e.Seq, "tree", err.Error())
	case err != nil:
		v.defect(e.Seq, "payload", err.Error())
	}
}

// redacts takes in which events a redacted event names, and that their content
// is gone. In a copy it speaks of the original.
func (v *verifier) redacts(e *Event, r RedactionNote) {
	if _, copied := e.MetadataValue(forkOriginKey); copied {
		return
	}
	for _, seq := range r.Seqs {
		v.named[seq] = true
		if !v.erased[seq] && !v.lost[seq] {
			v.defect(e.Seq, "redaction", fmt.Sprintf("it names event %d, whose content is still there", seq))
		}
	}
}

// notes reports the rules that an import broke and marked.
func (v *verifier) notes(e *Event) {
	for _, name := range e.broken() {
		v.note(e.Seq, name, "broken by an import")
	}
}

func (v *verifier) note(seq int64, rule, detail string) {
	v.report.Notes = append(v.report.Notes, Defect{v.report.Session, seq, "", -1, rule, detail})
}

// namedSince takes in the redacted events that were appended while the session
// was read, if one of its events was redacted meanwhile.
func (v *verifier) namedSince(ctx context.Context) error {
	if len(v.unnamed()) == 0 || len(v.report.Defects) > 0 {
		return nil
	}
	for e, err := range v.log.store.Read(ctx, v.report.Session, Span{From: v.order.last.Seq + 1}) {
		if err != nil {
			return v.damage(err)
		}
		if r, ok, err := e.RedactionNote(); ok && err == nil {
			for _, seq := range r.Seqs {
				v.named[seq] = true
			}
		}
	}
	return nil
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

// finish checks what only the end shows.
func (v *verifier) finish() {
	v.report.Head = v.order.last
	if err := v.order.end(); err != nil && len(v.report.Defects) == 0 {
		v.defect(v.order.last.Seq, "append", errUnended.Error())
	}
	if len(v.report.Defects) > 0 {
		return
	}
	for _, seq := range v.unnamed() {
		if v.lostBehind(seq) {
			v.note(seq, "redaction", "the content is gone; the event that says why was probably lost")
		} else {
			v.defect(seq, "redaction", "the content is gone, but no redacted event names it")
		}
	}
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

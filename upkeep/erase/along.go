package erase

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/searchtext"
)

// along examines the other events of the sessions with requested events, of their
// forks, and of their child sessions and parents.
func (p *plan) along(ctx context.Context) error {
	var sessions []string
	for _, r := range p.requests {
		sessions = append(sessions, r.session)
	}
	if len(sessions) == 0 {
		return nil
	}
	forks, err := p.log.Forks(ctx, sessions...)
	if err != nil {
		return err
	}
	for _, r := range slices.Clone(p.requests) {
		x := along{plan: p, request: r, named: map[eventKey]bool{}}
		if err := x.readRequested(ctx); err != nil {
			return err
		}
		holders := []eventlog.ForkInfo{{Session: r.session, Seq: math.MaxInt64}}
		for i := 0; i < len(holders); i++ {
			h := holders[i]
			if err := x.session(ctx, h.Session); err != nil {
				return err
			}
			if i > 0 {
				x.inform(h)
			}
			for _, f := range forks.ByParent[h.Session] {
				if f.Seq >= r.first {
					holders = append(holders, eventlog.ForkInfo{Session: f.Session, Seq: min(f.Seq, h.Seq)})
				}
			}
		}
		if err := x.family(ctx); err != nil {
			return err
		}
	}
	return nil
}

// inform notes the requested events that a fork shares: it gets a redacted event that
// names them, so that readers of the fork learn of the erasure. An interrupted redaction
// may have named some of them already.
func (x *along) inform(f eventlog.ForkInfo) {
	p := x.plan
	shared := slices.DeleteFunc(slices.Clone(x.request.seqs), func(seq int64) bool { return seq > f.Seq || x.named[eventKey{f.Session, seq}] })
	if len(shared) == 0 {
		return
	}
	p.shared[f.Session] = append(p.shared[f.Session], shared...)
}

// along finds what goes along with the requested events of one session.
type along struct {
	*plan
	request request
	first   int64             // the first requested event that others may depend on
	texts   []string          // the requested events' texts, cleaned and folded
	kin     []string          // child sessions, and the parents of a child session
	named   map[eventKey]bool // events that a redacted event of the session names already
	reader  searchtext.Reader
}

// minShared is the length of the shortest text that other events are searched for, in
// bytes. A shorter one is in too many events by chance.
const minShared = 8

// readRequested reads the texts of the requested events. Nothing goes along with the body
// of a request or an answer.
func (x *along) readRequested(ctx context.Context) error {
	x.reader.Open, x.first = x.log.OpenBlob, math.MaxInt64
	for _, seq := range x.request.seqs {
		e, err := ownEvent(ctx, x.log, x.request.session, seq)
		if err != nil {
			return err
		}
		if raw, err := isRaw(ctx, x.engine, &e); err != nil {
			return err
		} else if raw {
			continue
		}
		x.first = min(x.first, seq)
		texts, err := x.textsOf(ctx, &e)
		if err != nil {
			return err
		}
		for _, text := range texts {
			if text = searchtext.Fold(searchtext.Clean(text)); len(text) >= minShared {
				x.texts = append(x.texts, text)
			}
		}
	}
	return nil
}

// textsOf are the texts of an event: each part of a message, or the whole text of any
// other event. Lost data has none.
func (x *along) textsOf(ctx context.Context, e *event.Event) ([]string, error) {
	if err := x.engine.Fetch(ctx, e); err != nil {
		return nil, unlessLost(err)
	}
	if m, ok, err := event.Decode[event.Message](e); ok && err == nil {
		return partTexts(nil, m.Parts), nil
	}
	text, err := x.textOf(ctx, e)
	return []string{text}, err
}

// partTexts appends the texts of parts.
func partTexts(to []string, parts []event.Part) []string {
	for i := range parts {
		to = partTexts(append(to, parts[i].Text, string(parts[i].Arguments)), parts[i].Content)
	}
	return to
}

// textOf is the text that a person reads of an event, and the text of a raw record that
// repeats another event.
func (x *along) textOf(ctx context.Context, e *event.Event) (string, error) {
	if err := x.engine.Fetch(ctx, e); err != nil {
		return "", unlessLost(err)
	}
	plain := *e
	if e.Repeats() {
		plain.Metadata = nil // the reader skips what repeats
	}
	text, err := x.reader.Read(ctx, &plain)
	if errors.Is(err, event.ErrInvalidData) {
		return string(e.Data), nil
	}
	return string(text), unlessLost(err)
}

// unlessLost is err unless it says that data is lost or damaged.
func unlessLost(err error) error {
	if errors.Is(err, eventlog.ErrBlobNotFound) || errors.Is(err, eventlog.ErrCorrupt) {
		return nil
	}
	return err
}

// session examines the own events of one session. After an interrupted redaction
// there may be no request left; then it finds the sessions that are to be synced.
func (x *along) session(ctx context.Context, session string) error {
	for e, err := range x.log.Store().Read(ctx, session, eventlog.Span{}) {
		if err != nil {
			return err
		}
		if note, ok, err := event.Decode[event.RedactionNote](&e); ok && err == nil && !e.Copied() {
			x.earlierNote(&e, &note)
		}
		x.ledger(&e)
		if len(x.request.seqs) == 0 || e.Redacted() || x.picked[eventKey{session, e.Seq}] {
			continue
		}
		if err := x.event(ctx, &e); err != nil {
			return err
		}
	}
	return nil
}

// earlierNote notes what an earlier redaction has named.
func (x *along) earlierNote(e *event.Event, note *event.RedactionNote) {
	for _, seq := range note.Seqs {
		x.named[eventKey{e.SessionID, seq}] = true
	}
	if e.Seq > x.request.first {
		x.earlier[e.SessionID] = true
	}
}

// ledger notes the ledger that got the costs of the events before e.
func (x *along) ledger(e *event.Event) {
	if e.Type.Name() != event.AccountingFlushed || e.Seq < x.request.first || e.Copied() {
		return
	}
	flush, err := event.DecodeKept[event.AccountingFlush](e)
	if err != nil || flush.Ledger == "" {
		return
	}
	if x.ledgers[flush.Ledger] == nil {
		x.ledgers[flush.Ledger] = map[string]bool{}
	}
	x.ledgers[flush.Ledger][e.SessionID] = true
}

// event erases or lists an event, or does neither.
func (x *along) event(ctx context.Context, e *event.Event) error {
	stored := *e
	if e.Seq > x.first {
		switch derived, err := x.derived(ctx, e); {
		case err != nil:
			return err
		case derived:
			x.erase(&stored)
			return nil
		case e.Type.Name() == event.CompactionTriggered:
			x.list(e.SessionID, e.Seq, e.Type)
			return nil
		}
	}
	if kin := kinOf(e); kin != "" {
		x.kin = append(x.kin, kin)
	}
	if len(x.texts) == 0 {
		return nil
	}
	if x.begins(ctx, e) {
		x.erase(&stored)
		return nil
	}
	if x.exact {
		return nil
	}
	return x.shares(ctx, &stored)
}

// derived reports whether an event has a digest or a state that is computed from the
// events before it, or a request with their content.
func (x *along) derived(ctx context.Context, e *event.Event) (bool, error) {
	switch e.Type.Name() {
	case event.ProjectionSnapshotted:
		return true, nil
	case event.OpLogged:
		return isRaw(ctx, x.engine, e)
	case event.StepStarted:
		if err := x.engine.Fetch(ctx, e); err != nil {
			return true, unlessLost(err)
		}
		step, ok, err := event.Decode[event.StepStart](e)
		return !ok || err != nil || step.RequestDigest != "" || step.PromptCache.PrefixHash != "" || step.PromptCache.ToolSchemaHash != "", nil
	}
	return false, nil
}

// begins reports whether an event is a title that begins an erased text.
func (x *along) begins(ctx context.Context, e *event.Event) bool {
	if name := e.Type.Name(); name != event.SessionStarted && name != event.SessionUpdated {
		return false
	}
	if x.engine.Fetch(ctx, e) != nil {
		return false
	}
	s, _, err := event.Decode[event.Session](e)
	title := searchtext.Fold(searchtext.Clean(s.Title))
	title = strings.TrimRight(cmp.Or(strings.TrimSuffix(title, "…"), title), ". ")
	if err != nil || len(title) < minShared {
		return false
	}
	return slices.ContainsFunc(x.texts, func(text string) bool { return strings.HasPrefix(text, title) })
}

// shares erases a raw record that repeats one of the texts, and lists any other event
// with one of them.
func (x *along) shares(ctx context.Context, e *event.Event) error {
	stored := *e
	text, err := x.textOf(ctx, e)
	if err != nil {
		return err
	}
	folded := searchtext.Fold(searchtext.Clean(text))
	switch shared := slices.ContainsFunc(x.texts, func(t string) bool { return strings.Contains(folded, t) }); {
	case shared && e.Repeats():
		x.erase(&stored)
	case shared:
		x.list(e.SessionID, e.Seq, e.Type)
	}
	return nil
}

// family lists events of the kin, and of their kin, with one of the texts.
func (x *along) family(ctx context.Context) error {
	if x.exact || len(x.texts) == 0 {
		return nil
	}
	seen := map[string]bool{x.request.session: true}
	for i := 0; i < len(x.kin); i++ {
		session := x.kin[i]
		if seen[session] {
			continue
		}
		seen[session] = true
		err := x.relative(ctx, session)
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
		case errors.Is(err, eventlog.ErrCorrupt):
			x.noteUnread(session)
		case err != nil:
			return err
		}
	}
	return nil
}

// relative lists the own events of a session with one of the texts, or with the body of a
// call, and adds its kin.
func (x *along) relative(ctx context.Context, session string) error {
	for e, err := range x.log.Store().Read(ctx, session, eventlog.Span{}) {
		if err != nil {
			return err
		}
		if kin := kinOf(&e); kin != "" {
			x.kin = append(x.kin, kin)
		}
		if e.Redacted() || x.picked[eventKey{session, e.Seq}] {
			continue
		}
		raw, err := isRaw(ctx, x.engine, &e)
		if err == nil && raw {
			x.list(session, e.Seq, e.Type) // its body is not searched
		} else if err == nil {
			err = x.shares(ctx, &e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kinOf is the child session that an event names, or the parent of a session that begins
// with it; empty if there is neither.
func kinOf(e *event.Event) string {
	switch e.Type.Name() {
	case event.SessionStarted:
		p, err := event.DecodeKept[event.Session](e)
		if err == nil {
			return p.Parent.SessionID
		}
	case event.SessionForked:
		p, err := event.DecodeKept[event.Fork](e)
		if err == nil && p.Child != (event.ForkChild{}) {
			return p.Parent
		}
	}
	if _, ok := e.Type.ChildState(); ok {
		p, err := event.DecodeKept[event.Child](e)
		if err == nil {
			return p.ChildSessionID
		}
	}
	return ""
}

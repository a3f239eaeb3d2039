package document

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// importer imports one file.
type importer struct {
	ctx    context.Context
	log    *eventlog.Log
	format string
	file   File
	result records.Tally
	held   *Session // the pieces of a session so far; nil if there are none
	// conflicts are the errors of sessions with another history in the log.
	conflicts []error
}

// ImportRecords imports the records of a source, as Import imports its values.
func ImportRecords(
	ctx context.Context, log *eventlog.Log, src interop.Source, format string, all iter.Seq2[records.Record, error], read Read,
) (interop.Result, error) {
	im := importer{ctx: ctx, log: log, format: format, file: NewFile(src)}
	for rec, err := range all {
		var rejected *records.RecordError
		if err != nil && !errors.As(err, &rejected) {
			return im.result.Result, errors.Join(append(im.conflicts, err)...)
		}
		if rejected == nil {
			if !rec.Kept { // im.held refers to it
				rec.Value = rec.Value.Clone()
			}
			rejected, err = im.value(&rec, read)
		}
		if rejected != nil {
			im.reject(rejected)
		} else if err != nil {
			return im.result.Result, err
		}
	}
	if err := im.flush(); err != nil {
		return im.result.Result, err
	}
	return im.result.Result, errors.Join(im.conflicts...)
}

func (im *importer) reject(e *records.RecordError) {
	im.result.Records++
	im.result.Reject(e)
}

// value imports the sessions in a value.
func (im *importer) value(rec *records.Record, read Read) (*records.RecordError, error) {
	sessions, err := read(&im.file, rec)
	if err == nil {
		err = listed(sessions)
	}
	if err != nil {
		return rec.Reject(err), nil
	}
	if len(sessions) == 1 && sessions[0].Piece {
		return nil, im.piece(&sessions[0])
	}
	if err := im.flush(); err != nil {
		return nil, err
	}
	return nil, im.sessions(sessions)
}

// maxHeld bounds the items in held.
const maxHeld = 1024

// piece holds a piece of a session, after the pieces before it.
func (im *importer) piece(s *Session) error {
	if h := im.held; h != nil && h.ID == s.ID && len(h.Items) < maxHeld {
		h.Items, h.Head = append(h.Items, s.Items...), s.Head
		if !s.Totals.isZero() {
			h.Totals = s.Totals
		}
		return nil
	}
	if h := im.held; h != nil && h.ID == s.ID { // the totals are those of all pieces
		if s.Totals.isZero() {
			s.Totals = h.Totals
		}
		h.Totals = Totals{}
	}
	err := im.flush()
	im.held = s
	return err
}

// flush imports the held pieces.
func (im *importer) flush() error {
	if im.held == nil {
		return nil
	}
	held := *im.held
	im.held = nil
	return im.sessions([]Session{held})
}

func (im *importer) sessions(all []Session) error {
	for i := range all {
		err := im.session(&all[i])
		if errors.Is(err, interop.ErrHistory) || errors.Is(err, interop.ErrUnread) || errors.Is(err, interop.ErrErased) {
			im.conflicts = append(im.conflicts, err)
		} else if err != nil {
			return errors.Join(append(im.conflicts, err)...)
		}
	}
	return nil
}

// session imports a session. A session without items is held, unless it has ended.
func (im *importer) session(doc *Session) error {
	if err := cmp.Or(doc.Rejected, event.CheckSessionID(doc.ID)); err != nil {
		im.reject(doc.Rec.Reject(err))
		return nil
	}
	im.result.Records += doc.Held
	im.result.Skipped += doc.Held
	if doc.isEmpty() && !doc.Ended {
		im.result.Records++
		im.result.Skipped++
		return nil
	}
	if doc.List != nil {
		return im.list(doc)
	}
	s, err := im.open(doc)
	if err != nil {
		return err
	}
	if !im.accepts(s, doc) {
		return doc.Rec.Conflict(s.ID, "the session was not imported from "+im.format)
	}
	if doc.Copies {
		s.Program, s.ByContent = im.format, true
	}
	if s.Begun && doc.Begun != nil {
		doc.Items = slices.DeleteFunc(doc.Items, func(it Item) bool { return doc.Begun(it.Name) })
	}
	if doc.IsCopy && s.New() {
		s.CopiedFrom = []string{}
	}
	im.result.Touch(s.ID)
	return im.add(newAdding(im, doc, s))
}

// isEmpty reports whether the document has no items.
func (s *Session) isEmpty() bool { return len(s.Items) == 0 && (s.List == nil || s.facts.items == 0) }

// open opens the session with the document's id or, if the id is another
// document's, with the fallback id or a number.
func (im *importer) open(doc *Session) (*session, error) {
	if doc.Numbered {
		return im.openNumbered(doc)
	}
	s, err := openSession(im.ctx, im.log, doc.ID, doc)
	if err != nil || doc.FallbackID == "" {
		return s, err
	}
	another, err := im.isAnother(s, doc)
	if err != nil || !another {
		return s, err
	}
	return openSession(im.ctx, im.log, doc.FallbackID, doc)
}

// openNumbered opens the first session of the number that is new or opens with the items.
func (im *importer) openNumbered(doc *Session) (*session, error) {
	id := doc.ID
	for n := 2; ; n++ {
		s, err := openSession(im.ctx, im.log, id, doc)
		if err != nil || s.New() || !im.accepts(s, doc) {
			return s, err
		}
		if same, err := s.opensWith(doc.Items, im.format); err != nil || same {
			return s, err
		}
		id = fmt.Sprintf("%s-%d", doc.ID, n)
	}
}

// isAnother reports whether the session comes from another file and opens with
// other items.
func (im *importer) isAnother(s *session, doc *Session) (bool, error) {
	if s.New() || !im.accepts(s, doc) || s.path == "" || s.path == doc.Rec.Origin(0).Source {
		return false, nil
	}
	same, err := s.opensWith(doc.Items, im.format)
	return !same, err
}

// accepts reports whether the session can get the items of the document.
func (im *importer) accepts(s *session, doc *Session) bool {
	return s.From(append([]string{im.format}, doc.Formats...)...)
}

// add runs a, and appends its events.
func (im *importer) add(a *adding) error {
	err := a.run()
	if err != nil {
		a.s.Drop()
		err = a.doc.Rec.Located(err)
	} else {
		err = a.s.Flush(im.ctx)
	}
	im.result.Events += a.s.Written()
	return err
}

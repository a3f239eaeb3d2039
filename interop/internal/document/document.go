// Package document adds to a log what documents tell of sessions: files of JSON
// whose messages stand in a list or a tree, written anew whenever they grow.
//
// An Item that has a name is known again by it, any other by what it says and by
// all that is said before it. So a second import adds nothing, and that of a
// longer document what is new. Where what is new follows something that others
// followed already, a head_moved leads there.
package document

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// Session is what a document tells of a session.
type Session struct {
	ID string
	// Own is the id that the document gives it, if it does.
	Own string
	// Version is that of the format, if it is told.
	Version string
	// About is how it starts. Without a title, the first words of the user
	// become it. Extra is what stands around the items: where it is another one
	// than before, it becomes a session_updated.
	About event.Session
	// At is when it started; zero if that is not told.
	At time.Time
	// Items are in the order in which they are added.
	Items []Item
	// Held is how much more there is, which waits until all of it is there.
	Held int
	// Over says that it has ended: without items it is a session, too.
	Over bool
	// Head names the item that the path ends at once something was added; if
	// empty it is the newest.
	Head string
	// Spent is what all of it took. What is not told of single messages becomes
	// a step_completed behind the items.
	Spent Spent
	// Piece says that this is a piece of the session, whose items name what they
	// follow: more may stand in the next value.
	Piece bool
	// Rec is the record that the session stands in, and Refused why that cannot be
	// read; nil if it can.
	Rec     *interop.Record
	Refused error
}

// Spent is what models took.
type Spent struct {
	Model, Agent string
	Usage        event.Usage
	Cost         event.Cost
}

func (s *Spent) isZero() bool { return s.Cost == 0 && s.Usage.IsZero() }

// Item is something that a session holds.
type Item struct {
	// Rec is where it stands, and what there is of it.
	Rec interop.Record
	// Part tells apart several items of one record; 0 is the first.
	Part int
	// Name is unique in the session, and stays; empty if the item has none.
	Name string
	// After is the name of the item that it follows; if empty it follows the one
	// before it. It may be in the log alone. Label names the branch, where that
	// leaves a path.
	After, Label string
	// Late says that it may come when others followed already what it follows: it
	// is added behind them then.
	Late bool
	At   time.Time
	// Forgets names items that the model is shown no more from here on. Payload is a
	// Compaction then, whose Covers and Entries follow from them; it is kept raw
	// where the session has none of them.
	Forgets []string
	// Renews says that the compaction before it is forgotten, too.
	Renews bool
	// Payload is what it becomes. Without one, it is kept raw, as Kind.
	Payload event.Payload
	Kind    string
	Cost    event.Cost
}

// Read finds the sessions in a value of a file. An error refuses the value.
type Read func(f *File, rec *interop.Record) ([]Session, error)

// Import appends to the log what a source holds and the log does not have yet,
// for the format of that name. A value that cannot be read is refused, and so is
// one that is cut off. A session that stops does not stop the others.
func Import(ctx context.Context, log *eventlog.Log, src interop.Source, format string, read Read) (interop.Result, error) {
	return ImportRecords(ctx, log, src, format, interop.Values(src), read)
}

// ImportRecords imports, as Import does, the records that were found in a source.
func ImportRecords(
	ctx context.Context, log *eventlog.Log, src interop.Source, format string, records iter.Seq2[interop.Record, error], read Read,
) (interop.Result, error) {
	im := importer{ctx: ctx, log: log, format: format, file: NewFile(src)}
	for rec, err := range records {
		var refused *interop.RecordError
		if err != nil && !errors.As(err, &refused) {
			return im.result, errors.Join(append(im.stopped, err)...)
		}
		if refused == nil {
			rec.Value = rec.Value.Clone() // pieces stay until all are there
			refused, err = im.value(&rec, read)
		}
		if refused != nil {
			im.result.Records++
			im.result.Reject(refused)
		} else if err != nil {
			return im.result, err
		}
	}
	if err := im.flush(); err != nil {
		return im.result, err
	}
	return im.result, errors.Join(im.stopped...)
}

// value adds the sessions in a value.
func (im *importer) value(rec *interop.Record, read Read) (*interop.RecordError, error) {
	sessions, err := read(&im.file, rec)
	if err != nil {
		return rec.Reject(err), nil
	}
	if len(sessions) == 1 && sessions[0].Piece {
		return nil, im.piece(&sessions[0])
	}
	if err := im.flush(); err != nil {
		return nil, err
	}
	return nil, im.all(sessions)
}

// mostPieces bounds how many are held before they are added.
const mostPieces = 1024

// piece holds a piece of a session, behind those before it.
func (im *importer) piece(s *Session) error {
	if h := im.held; h != nil && h.ID == s.ID && len(h.Items) < mostPieces {
		h.Items, h.Head = append(h.Items, s.Items...), s.Head
		if !s.Spent.isZero() {
			h.Spent = s.Spent
		}
		return nil
	}
	err := im.flush()
	im.held = s
	return err
}

// flush adds what is held.
func (im *importer) flush() error {
	if im.held == nil {
		return nil
	}
	held := *im.held
	im.held = nil
	return im.all([]Session{held})
}

// ErrShape: a value is not what the format has.
var ErrShape = errors.New("not of this format")

// Raw makes an item of a value that is kept as it is.
func Raw(rec interop.Record, kind string) Item { return Item{Rec: rec, Kind: kind} }

// Told makes a record of members that have no place of their own, of what rec
// is.
func Told(rec *interop.Record, members jsontext.Value) interop.Record {
	told := *rec
	told.Value, told.Digest, told.Size = members, event.DigestOf(members), int64(len(members))
	return told
}

// Package document imports documents: JSON files with whole sessions, which their
// program rewrites when a session grows. The messages are a list or a tree.
//
// An importer parses a file into Sessions of Items. The package finds out which
// items the log has, and appends the others. An item with a name has the name as
// its identity. Any other item is the child of the item before it, with its content:
// the package walks the tree of the session along the items. So a second import adds
// nothing, and the import of a longer document adds the new items. If the parent of a
// new item has another child already, a head_moved to the parent comes first.
//
// The walk finds a redacted item by its place: it is the redacted child with the type,
// the role and the call ids of the item. Nothing of such an item is stored.
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
	"github.com/convlog/convlog/interop/internal/records"
)

// Session is a session of a document.
type Session struct {
	ID string
	// FallbackID replaces ID if the log has a session ID from another file and with
	// another opening. No item has a name then.
	FallbackID string
	// Numbered says that sessions with other openings can have the ID. They get numbers
	// after it, from 2. No item has a name then.
	Numbered bool
	// Own is the session's id in the document, if it has one.
	Own string
	// Version is the version of the format, if the document says it.
	Version string
	// Formats are more formats, besides the import's own, whose sessions can get the
	// items.
	Formats []string
	// About is the session_started. An empty title becomes the first words of the
	// user, a Source without a format the format of the import. Extra holds the
	// members around the items: an Extra that is new to the session becomes a
	// session_updated.
	About event.Session
	// At is the time of the start; zero if the document does not say it.
	At time.Time
	// Items are in the order in which they are added.
	Items []Item
	// List yields the items in place of Items, and can be called again. An import keeps
	// no item of it, if the log has the items or their beginning and nothing else. The items
	// have a Rec, a Run, a time and content only, and the session has no Totals, no Head and no
	// Held. An error rejects the value.
	List iter.Seq2[Item, error]
	// Held counts further records, which are held until the rest of them is there.
	Held int
	// Ended says that no more items come: the session is imported without items,
	// too.
	Ended bool
	// Head names the item at the end of the active path. It has an effect if the
	// import adds an event. Empty is the newest item.
	Head string
	// Totals is the usage of the whole session. The part that single messages do not
	// account for becomes a step_completed after the items.
	Totals Totals
	// LateResults says that results of calls can be added after later items. Such an
	// Item is an Answer.
	LateResults bool
	// Begun reports whether logtool resume wrote an item, by the name of the item, if it wrote
	// the beginning of the session; nil is none.
	Begun func(name string) bool
	// Copies says that the program copies messages, with their times and without their ids, into
	// other sessions: an item that another session has is inherited. IsCopy says that the items
	// begin with such copies.
	Copies, IsCopy bool
	// Piece says that the next values of the file may hold more items of the session.
	// All items name their parents then.
	Piece bool
	// Rec is the record with the session. Rejected is the reason why the record
	// cannot be imported; nil if it can.
	Rec      *records.Record
	Rejected error

	facts *listFacts // of List
}

// Totals is the usage of models.
type Totals struct {
	Model, Agent string
	Usage        event.Usage
	Cost         event.Cost
}

func (t *Totals) isZero() bool { return t.Cost == 0 && t.Usage.IsZero() }

// Item is a message or another element of a session.
type Item struct {
	// Rec is the record of the item; its value is the item's.
	Rec records.Record
	// Part numbers the items of one record from 0.
	Part int
	// Partial says that the event holds a part of the record only, and other events hold
	// the rest.
	Partial bool
	// Name is unique in the session and never changes; empty if the item has none. It
	// begins with a word or an id, and never depends on content.
	Name string
	// Key is the digest of the item's own content; empty if the package computes it from
	// the payload or the record.
	Key event.Digest
	// Anywhere says that the session has the item once. It needs no name: the key finds
	// it at any place.
	Anywhere bool
	// Answer says that the item is the result of the call before it. The call id finds
	// it. See Session.LateResults.
	Answer bool
	// Run numbers the groups of consecutive messages from 1; 0 is no group. The package
	// makes the group of the messages.
	Run int
	// After names the parent, which may be in the log only. Empty is the item before.
	// Label is the label of the head_moved, if there is one.
	After, Label string
	// Late says that the item may arrive after its siblings: it is added after them,
	// on the same path.
	Late bool
	At   time.Time
	// Forgets names the items that a compaction removes from the context, and Drops are
	// the indexes of items before it. The Payload is a Compaction, whose Covers and Entries
	// the package fills in. If the session has none of the items, the item is kept raw.
	Forgets []string
	Drops   []int
	// Aside says that the item may come up between items that the session has already. It
	// is added after them, and the Key finds it at any place. No item is its child.
	Aside bool
	// Context says that a program wrote the message in the user's name.
	Context bool
	// Renews says that the compaction replaces the one before it, too.
	Renews bool
	// Payload is the item's payload. An item without one is kept raw, as Kind.
	Payload event.Payload
	Kind    string
	Cost    event.Cost
}

// Read parses the sessions in a value of a file. An error rejects the value.
type Read func(f *File, rec *records.Record) ([]Session, error)

// Import appends the events of a source that are missing in the log, for the
// format with the name. An invalid or truncated value is rejected. A session that
// fails with interop.ErrHistory, ErrUnread or ErrErased does not stop the others.
func Import(ctx context.Context, log *eventlog.Log, src interop.Source, format string, read Read) (interop.Result, error) {
	return ImportRecords(ctx, log, src, format, records.Values(src), read)
}

// ErrShape reports a value that does not have the structure of the format.
var ErrShape = errors.New("not of this format")

// Raw returns an item that keeps the record as it is.
func Raw(rec records.Record, kind string) Item { return Item{Rec: rec, Kind: kind} }

// Subrecord returns a record for some members of rec.
func Subrecord(rec *records.Record, members jsontext.Value) records.Record {
	sub := *rec
	sub.Value, sub.Digest, sub.Size = members, event.DigestOf(members), int64(len(members))
	return sub
}

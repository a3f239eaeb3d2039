package projection

import (
	"context"
	"iter"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Buffered limits the bytes of events that a load keeps in memory.
func Buffered(o Options, bytes int) Options {
	o.buffer = bytes
	return o
}

// Measured applies a patch. It returns the size and the depth that the document
// stores, and its real size and depth.
func Measured(document, patch jsontext.Value) (known, real [2]int, err error) {
	n, err := parseDocument(document)
	if err == nil {
		n, err = n.patched(patch)
	}
	if err != nil {
		return known, real, err
	}
	again, err := parseDocument(n.value())
	if err != nil {
		return known, real, err
	}
	return [2]int{n.size, n.depth}, [2]int{again.size, again.depth}, nil
}

// SnapshotOf reads a snapshot's event.
var SnapshotOf = snapshotOf

// Document is an immutable JSON value.
type Document = document

// ParseDocument reads a document, PatchDocument applies a patch, and DocumentText writes
// the document.
var (
	ParseDocument = parseDocument
	PatchDocument = (*document).patched
	DocumentText  = func(n *document) string { return string(n.value()) }
)

// EntriesOf is Entries with other limits.
func EntriesOf(ctx context.Context, log *eventlog.Log, session string, bytes, window int, o RenderOptions, opts ...Options) iter.Seq2[Entry, error] {
	return entriesOf(ctx, log, session, bytes, window, optionsOf([]RenderOptions{o}), opts...)
}

// EntriesInWindows renders a state as Entries does, with another number of items that are
// decoded at a time.
func EntriesInWindows(h *HistoryState, window int, o ...RenderOptions) iter.Seq2[Entry, error] {
	return newRendering(h, optionsOf(o)).entries(window)
}

// MessagesInWindows is Messages with another number of items that are decoded at a time.
func MessagesInWindows(h *HistoryState, window int, o ...RenderOptions) ([]Entry, error) {
	r := newRendering(h, optionsOf(o))
	r.frozen.window = window
	err := r.all()
	return r.frozen.entries, err
}

// CheckCompaction is Compact without the append.
func CheckCompaction(ctx context.Context, log *eventlog.Log, session string, c event.Compaction) error {
	_, _, err := checkCompaction(ctx, log, session, c)
	return err
}

// Reasons of a PatchError, and errors of a wrong use of the package.
var (
	ErrNoTarget         = errNoTarget
	ErrTestFailed       = errTestFailed
	ErrInvalidPatch     = errInvalidPatch
	ErrDocumentTooLarge = errDocumentTooLarge
	ErrStateShape       = errStateShape

	ErrInvalidSet   = errInvalidSet
	ErrInvalidState = errInvalidState
	ErrNotNext      = errNotNext
)

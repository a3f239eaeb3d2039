package adopt

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/upkeep/internal/keptsum"
)

var (
	errUnnamed = errors.New("the content is erased, but no redacted event names it")
	errKept    = errors.New("the members that it kept of the erased events were changed afterwards")
)

// notes checks the redactions of a stream: that its new redacted lines would not be
// damage in the log.
type notes struct {
	first   int64                    // the first seq of the stream
	kept    map[int64]jsontext.Value // of the events that are redacted in the stream or in the log
	lost    map[int64]bool
	last    int64          // the last lost event
	unnamed map[int64]bool // events that the stream would redact, and that no event names yet
}

// event notes the next event of the stream. stored is the event that the log has at its
// place, or the zero event.
func (n *notes) event(e, stored *event.Event) error {
	if n.first == 0 {
		*n = notes{first: e.Seq, kept: map[int64]jsontext.Value{}, lost: map[int64]bool{}, unnamed: map[int64]bool{}}
	}
	switch {
	case stored.Redacted():
		n.kept[e.Seq] = stored.Kept()
	case e.Redacted():
		n.kept[e.Seq], n.unnamed[e.Seq] = e.Kept(), true
	case e.Type.Name() == event.Lost:
		n.lost[e.Seq], n.last = true, e.Seq
	}
	note, ok, err := event.Decode[event.RedactionNote](e)
	if !ok || err != nil || e.Copied() {
		return nil // an event that cannot be decoded names nothing, and a copy names the original's events
	}
	for _, seq := range note.Seqs {
		delete(n.unnamed, seq)
	}
	if stored.Seq > 0 {
		return nil // the log has it already
	}
	return n.check(&note)
}

// check checks the events that a new redacted event names.
func (n *notes) check(note *event.RedactionNote) error {
	h, whole := keptsum.New(), note.Kept != ""
	for _, seq := range note.Seqs {
		if seq < n.first {
			continue // the parent's
		}
		kept, erased := n.kept[seq]
		if !erased && !n.lost[seq] {
			return fmt.Errorf("it names event %d, whose content is still there", seq)
		}
		if whole = whole && erased; whole {
			h.Add(kept)
		}
	}
	if whole && h.Digest() != note.Kept {
		return errKept
	}
	return nil
}

// end returns the first event that the stream would redact without a redacted event that
// names it; 0 if there is none. That event may be one of the lost events.
func (n *notes) end() (seq int64) {
	for unnamed := range n.unnamed {
		if unnamed > n.last && (seq == 0 || unnamed < seq) {
			seq = unnamed
		}
	}
	return seq
}

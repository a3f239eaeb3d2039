package trail

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	_ "github.com/convlog/convlog/internal/testsize"
)

// plain is a trail that knows the parent of each event and nothing else.
type plain struct {
	parent []int64 // by seq
	kinds  []event.Type
}

// path is the path that ends with seq, newest first.
func (p *plain) path(seq int64) (all []int64) {
	for ; seq > 0; seq = p.parent[seq] {
		all = append(all, seq)
	}
	return all
}

func (p *plain) talks(seq int64) bool {
	return p.kinds[seq] == event.MessageAdded || p.kinds[seq] == event.CompactionTriggered
}

func (p *plain) leaves(seq int64) bool {
	for _, at := range p.path(int64(len(p.parent) - 1)) {
		if at == seq {
			return false
		}
		if p.talks(at) {
			return true
		}
	}
	return true
}

func (p *plain) talkBefore(seq int64) int64 {
	for _, at := range p.path(p.parent[seq]) {
		if p.talks(at) {
			return at
		}
	}
	return 0
}

func (p *plain) shownSince(seq int64) (shown []int64) {
	for _, at := range p.path(int64(len(p.parent) - 1)) {
		if p.kinds[at] == event.MessageAdded {
			shown = append([]int64{at}, shown...)
		}
		if at == seq {
			return shown
		}
	}
	return nil
}

// Law: a trail gives the answers of a walk over the parents of all events.
func TestAnyTrail(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		trail, p := New(), &plain{parent: []int64{0}, kinds: []event.Type{""}}
		for seq := int64(1); seq <= int64(rapid.IntRange(1, 40).Draw(r, "events")); seq++ {
			kind := rapid.SampledFrom([]event.Type{
				event.MessageAdded, event.MessageAdded, event.CompactionTriggered, "x:note", event.HeadMoved,
			}).Draw(r, "kind")
			parent := seq - 1
			if kind == event.HeadMoved && seq > 1 {
				parent = int64(rapid.IntRange(1, int(seq-1)).Draw(r, "to"))
				trail.Moved(seq, parent)
			} else {
				trail.Grow(seq, kind)
			}
			p.parent, p.kinds = append(p.parent, parent), append(p.kinds, kind)
		}
		for seq := int64(1); seq < int64(len(p.parent)); seq++ {
			if got, want := trail.Holds(seq), slices.Contains(p.path(int64(len(p.parent)-1)), seq); got != want {
				r.Fatalf("holds(%d) is %v, not %v", seq, got, want)
			}
			if got, want := trail.Leaves(seq), p.leaves(seq); got != want {
				r.Fatalf("leaves(%d) is %v, not %v", seq, got, want)
			}
			if got, want := trail.TalkBefore(seq), p.talkBefore(seq); got != want {
				r.Fatalf("talk before %d is %d, not %d", seq, got, want)
			}
			if diff := cmp.Diff(p.shownSince(seq), trail.ShownSince(seq)); diff != "" {
				r.Fatalf("shown since %d (-want +got):\n%s", seq, diff)
			}
		}
	})
}

func TestRemember(t *testing.T) {
	moved := event.New(event.HeadMove{To: 1})
	trail := New()
	for i, e := range []event.Event{{Type: event.MessageAdded}, {Type: event.MessageAdded}, moved, {Type: event.MessageAdded}} {
		e.Seq = int64(i + 1)
		if err := trail.Remember(&e); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int64{1, 4}, trail.ShownSince(1)); diff != "" {
		t.Errorf("shown since the start (-want +got):\n%s", diff)
	}
	moved.Seq = 1
	if err := trail.Remember(&moved); err == nil {
		t.Error("a head_moved to itself is taken")
	}
}

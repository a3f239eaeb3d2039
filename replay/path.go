package replay

import (
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
)

// ActivePath yields what of a lineage is on the active path, in the order the
// lineage comes in: the chain from the newest event back to the start. The
// lineage must be whole, and is checked as Check does. Oldest first, it is kept
// in memory until its end has been seen; Backward it is not.
func ActivePath(lineage iter.Seq2[event.Event, error], opts ...Options) iter.Seq2[event.Event, error] {
	o := one(opts)
	o.Whole = true
	return pathOf(Check(lineage, o), o.Backward)
}

// pathOf is ActivePath of a sequence that was checked.
func pathOf(events iter.Seq2[event.Event, error], backward bool) iter.Seq2[event.Event, error] {
	if backward {
		return pathBack(events)
	}
	return func(yield func(event.Event, error) bool) {
		all, err := collect(events)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		// What is on the path gathers at the end of the same slice.
		first := len(all)
		for e, err := range pathBack(reversed(all)) {
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			first--
			all[first] = e
		}
		Of(all[first:]...)(yield)
	}
}

// pathBack yields the events on the path that ends with the first event.
func pathBack(events iter.Seq2[event.Event, error]) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		walk, begun := event.Walk{}, false
		for e, err := range events {
			if !begun {
				walk.Next, begun = e.Seq, true
			}
			onPath := false
			if err == nil {
				onPath, err = walk.Step(&e)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			if onPath && !yield(e, nil) {
				return
			}
		}
	}
}

// Of yields events that are in memory.
func Of(events ...event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func reversed(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range slices.Backward(events) {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func collect(events iter.Seq2[event.Event, error]) (all []event.Event, err error) {
	for e, err := range events {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

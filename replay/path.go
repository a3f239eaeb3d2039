package replay

import (
	"iter"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/backward"
)

// ActivePath yields the events of a lineage that are on the active path, in the order
// of the lineage. The active path is the chain from the newest event back to the
// start. The lineage must be whole; ActivePath checks it as Check does. Oldest first,
// it keeps the lineage in memory until the end; with Backward it does not.
func ActivePath(lineage iter.Seq2[event.Event, error], opts ...Options) iter.Seq2[event.Event, error] {
	o := optionsOf(opts)
	o.Whole = true
	return pathOf(Check(lineage, o), o.Backward)
}

// pathOf is ActivePath for a checked sequence.
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
		// Move the events of the path to the end of the same slice.
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
		walk, started := backward.Walk{}, false
		for e, err := range events {
			if !started {
				walk.Next, started = e.Seq, true
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

// Of yields events from memory.
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

// Package replay iterates the events of one lineage, checked, and folds them
// into a state.
//
//	events := log.ActivePath(ctx, "order-42")
//	n, err := replay.Replay(events, 0, func(n *int, e *event.Event) error {
//		*n++
//		return nil
//	})
//
// # Sequences
//
// Everything here takes an iterator of events, so it works alike over Log.Read
// in either direction, over Log.ActivePath, over events in memory (Of) and over
// the lines of an export or a recorded session (Lines). It cannot write, and no
// watcher sees it.
//
// # What is checked
//
// Check passes a sequence on and ends it with a typed error where the events
// are not of one lineage, not in order, not all there, or of a newer payload
// version than this program knows. It does not recompute the hash chain, which
// is what Log.Verify is for. Replay, Replayer and ActivePath check what they
// read.
//
// # Folding
//
// A Reducer takes an event into a state. A Replayer says which events of a
// sequence its reducers see: all, those up to a seq or an event, or only what
// is then on the active path. Package replaytest compares a run with a
// recording of it.
package replay

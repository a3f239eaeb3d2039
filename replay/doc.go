// Package replay checks a sequence of events and folds it into a state.
//
//	events := log.Read(ctx, "order-42", eventlog.All().OnPath())
//	n, err := replay.Replay(events, 0, func(n *int, e *event.Event) error {
//		*n++
//		return nil
//	})
//
// # Sequences
//
// All functions take an iterator of events: Log.Read in either direction, or events in
// memory (Of). The package does not write, and no watcher sees a replay.
//
// # Checks
//
// Check yields the events of a sequence. It ends the sequence with a typed error at an
// event of another lineage, a missing event, an event out of order, or a payload
// version newer than this program. It does not compute the hash chain: verify.Session does.
// Replay, Replayer and ActivePath check the events that they read.
//
// # Folding
//
// A Reducer folds an event into a state. A Replayer selects the events that its
// reducers get: all events, the events up to a seq or an id, or only the events on the
// active path. Package replaytest compares a run with a recording of it.
package replay

// Package projection folds the events of a session into states, and stores snapshots
// of the states in the same log. Loading the state of a long session reads the newest
// snapshot and the events after it.
//
// A Projection is a pure fold with a name and a version. Load returns its state:
//
//	h, err := projection.Load(ctx, log, "order-42", projection.History())
//
// A Set loads several projections in one pass. A Live follows a session, and appends a
// snapshot when a Policy decides so.
//
// # Snapshots
//
// A snapshot is an event with the states of a set. No state depends on a snapshot:
// Load skips a snapshot that is redacted, damaged, of another version or of other
// events, and uses an older one, or replays the session from its start. Explain lists
// the snapshots that Load used and skipped.
//
// snapshot_choice.go chooses the snapshots that a load starts from, snapshot_tail.go
// folds the events after them, snapshot_body.go writes and reads the states.
package projection

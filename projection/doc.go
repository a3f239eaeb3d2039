// Package projection folds the events of a session into views, and keeps
// snapshots of them in the same log, so that a view of a long session costs the
// newest snapshot and the events behind it.
//
// A Projection is a pure fold with a name and a version. Load gives its state:
//
//	h, err := projection.Load(ctx, log, "order-42", projection.History)
//
// Several are loaded together as a Set, and a Live goes along with a session
// and takes snapshots when a Policy says so.
//
// # Snapshots are no truth
//
// A snapshot is an event, but nothing depends on it: one that was redacted,
// cannot be read, is of another version or fails its digest is passed over for
// an earlier one, in the end for a full replay. Explain says which were used
// and which passed over.
package projection

// Package fork works on the tree of conversations: it forks, copies, rewinds
// and recovers sessions, asks who descends from whom, and compares branches.
//
// A fork is a new session whose past is another session's: nothing is copied,
// and what either appends afterwards the other never sees.
//
//	child, err := fork.At(ctx, log, "order-42", fork.BeforeTurn(3), fork.Options{Label: "retry"})
//
// A copy is a session of its own, which needs no other. A rewind goes back
// within a session; what it leaves behind is orphaned, stays in the log, and a
// recovery returns to it.
//
// Everything here reads and appends through eventlog.Log, and so works alike
// over every store. Functions may be called concurrently.
package fork

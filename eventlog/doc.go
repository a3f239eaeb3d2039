// Package eventlog is an append-only log of AI conversations. Every message, tool
// call and result is an immutable event of a session.
//
//	log := eventlog.Open(jsonl.New("conversations"))
//	defer log.Close()
//	head, err := log.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Where is my parcel?"))
//	...
//	for e, err := range log.Read(ctx, "order-42", eventlog.All()) {
//		...
//	}
//
// # Log and Store
//
// Programs use a [Log]. A [Store] stores the lines of the log: store/jsonl in a folder
// of text files, store/sqlite in one database file. A Log behaves the same over each
// store. Optional abilities of a store ([Blobs], [Searcher], …) are interfaces of
// their own; [As] finds them.
//
// # Appends
//
// An append is stored whole or not at all. It names the head that it expects ([At],
// [New], [Any]); a different head is an [ErrConflict]. An event that breaks
// a rule is an event.ErrInvalid. Neither error writes anything. The events are durable
// when Append returns, unless the store has a relaxed sync policy. A second append of
// the same events stores nothing, so a program may retry after any error.
//
// # Reads
//
// The only order of events is Seq. A fork ([event.Fork]) reads the events before its
// fork point from its parent. Every read checks the checksum of each event; damage is
// a [CorruptError] that names the place, and no read skips it. Package upkeep/verify
// also checks the hash chain.
//
// # Events
//
// Package event defines the events and their payloads: event.New makes an event of a
// payload, and event.Decode decodes it. The log stores events of unknown types
// unchanged. docs/FORMAT.md fixes the bytes and lists the types.
package eventlog

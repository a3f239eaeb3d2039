// Package eventlog is an append-only log of AI conversations: every message,
// tool call and result is an immutable event of a session.
//
//	l := eventlog.Open(jsonl.New("conversations"))
//	defer l.Close()
//	question, err := eventlog.NewUserMessage("Where is my parcel?")
//	...
//	head, err := l.Append(ctx, "order-42", eventlog.New, question)
//	...
//	for e, err := range l.Read(ctx, "order-42", eventlog.All) {
//		...
//	}
//
// # Log and Store
//
// A [Log] is what programs hold; a [Store] is what keeps its lines: store/jsonl,
// a folder of text files, or store/sqlite, one database file. Whatever is said
// of a Log holds over both.
//
// # What it promises
//
// An append is stored whole or not at all, compared with the head it expects
// ([At], [New], [Any]), and durable when it returns, unless the store was told
// to sync less. Appending the same events again stores them once, so that an
// append may be retried after any error. A rule that an append breaks is an
// [ErrInvalid], a head that moved an [ErrConflict]; neither writes anything.
//
// Each event has a checksum, looked at whenever it is read, and a hash that
// chains it to the one before it, which [Log.Verify] checks. Damage is a
// [CorruptError] that names the place; it is never skipped.
//
// # Events
//
// An [Event] is an envelope around a payload, which stays JSON until it is asked
// for: NewMessage and its kin make events of payloads, and the methods of Event
// named like a payload ([Event.Message], …) decode them. The only order is Seq.
// Types that the package does not know are kept and copied as they are.
//
// docs/FORMAT.md fixes the bytes, and lists the types and what each may hold.
package eventlog

// Package event defines the events of a log of conversations, the vocabulary of
// payloads, and the tree of events in a session. It does no I/O.
//
//	question := event.UserMessage("Where is my parcel?")
//	...
//	message, ok, err := event.Decode[event.Message](&e)
//
// An [Event] is an envelope around a payload. [New] makes an event of a payload, and
// [Decode] decodes the payload of an event. Events of unknown types are stored and
// copied unchanged.
//
// The package also has all rules that depend on events alone, so that every other
// package decides in the same way: the tool calls of a message ([OutlineOf]), the active
// path ([Tree], [Path]), and the members that a redaction keeps ([Event.Structure]).
//
// docs/FORMAT.md fixes the bytes, and lists the types and their members.
package event

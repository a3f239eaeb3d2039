// Package event is the data of a log of conversations: the event, the vocabulary
// of payloads, and the tree that the events of a session form. It does no I/O.
//
//	question := event.UserMessage("Where is my parcel?")
//	...
//	message, ok, err := event.Decode[event.Message](&e)
//
// An [Event] is an envelope around a payload, which stays JSON until [Decode] is
// asked for it. [New] makes an event of a payload. Events of types that this
// package does not know are stored and copied as they are.
//
// Everything that follows from events alone is here, so that every room decides
// alike: a message's tool calls ([OutlineOf], [PendingCalls]), the active path
// ([Tree], [Path], [Walk]), the text that searches look at ([TextReader], [Fold]),
// and what a redaction keeps ([Event.Structure]).
//
// docs/FORMAT.md fixes the bytes, and lists the types and their members.
package event

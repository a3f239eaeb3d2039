// Package jetstream stores sessions in JetStream, the storage of NATS, version 2.12 or
// later. Many processes on many machines may use one log at the same time, and each
// message may be stored on several servers.
//
//	store, err := jetstream.New("nats://user:password@host?replicas=3")
//
// A log is a set of streams whose names begin with a prefix, "convlog" unless the option
// prefix names another one. The first write creates them; reading creates nothing. An
// append is one message. FORMAT.md has the subjects and the headers.
//
// JetStream syncs its files every two minutes by default, so the newest acknowledged
// appends may be lost if all servers of a stream lose power. Keep a copy of the log
// elsewhere.
//
// These files explain the store, in this order:
//
//	options.go   the options, and the options in a URL
//	store.go     Store, its connection, its end
//	client.go    requests are sent again until an answer arrives
//	layout.go    the streams and their subjects, and their creation
//	frame.go     the message of an append, and its header
//	append.go    the server compares the sequence of the last message of a session
//	view.go      a session as of one frame; read.go reads its frames
//	index.go     which frames were replaced, by which messages
//	marks.go     messages that find the users of a blob; lookup.go reads them
//	fence.go     a write under a lock fails if the lock is lost; lock.go has the locks
//	rewrite.go   redaction stores replacing frames; finish.go erases the old ones
//	blobs.go     blobs and their pieces
//	changes.go   the servers repeat stored messages for listeners
//	rollback.go  servers that lost acknowledged messages
//	failure.go   what an error of the server means for the caller
package jetstream

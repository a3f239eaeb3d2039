// Package postgres stores sessions in a PostgreSQL database, version 14 or later. Many
// processes on many machines may use one database at the same time.
//
//	store, err := postgres.New("postgres://user@host/database")
//
// A log is a schema of the database, "convlog" unless the option schema names another
// one. The first write creates its tables:
//
//	convlog      the version of the schema; one row
//	sessions     a row for each session: its head and its size
//	events       a row for each event; the line is the authority, and the other columns
//	             are derived from it
//	blobs        a row for each blob, and blob_pieces with the bodies in pieces of 1 MiB
//	leases       the leases that are held, each with its owner
//	fence        one row that each exclusive store lock changes
//	erasing      what an erasure is to do
//	copies       the lines that repairs replaced
//
// schema.go has the columns. Session ids are bytes, so any encoding and collation
// of the database will do.
//
// These files explain the store, in this order:
//
//	options.go   the options, and the options in a DSN
//	store.go     Store, its connections, its opening
//	schema.go    the tables
//	append.go    an append is one statement, which compares the head
//	read.go      reads fetch pages
//	lock.go      the store lock is an advisory lock, and a fence for holders that lost it
//	lease.go     leases are rows with an end, by the clock of the server, and an owner
//	holder.go    the owner's advisory lock, on a connection of its own
//	failover.go  a new primary has the events that the old one had acknowledged
//	changes.go   LISTEN and NOTIFY
//	failure.go   what an error of the driver means for the caller
package postgres

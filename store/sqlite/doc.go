// Package sqlite keeps a log in one SQLite database file.
//
//	log := eventlog.Open(sqlite.New("s.db"))
//
// The file may be used by many goroutines and processes of one machine at the
// same time; network file systems are not supported. Beside S.db stand
// S.db-wal and S.db-shm, which belong to SQLite while the database is open,
// and S.db-lock, the store lock.
//
// # How writes are ordered
//
// A store has one writer connection and a queue in front of it. Whoever writes
// joins the queue; when the database's write lock has been taken, everything
// that is queued by then goes into one transaction and is made durable by one
// sync. So many sessions share the cost of a sync, and waiting for another
// process is waiting in the queue: a caller whose context ends there leaves
// at once, and nothing of its was written. The heads are compared inside the
// transaction; an append that finds another head than it expects changes
// nothing.
//
// # How reads stay out of the way
//
// Reads go through a few connections of their own and in pages of at most
// 1,000 rows and about 1 MiB, each a read transaction of its own. Between two
// pages nothing is held, so that a slow reader neither blocks a writer nor
// keeps the write-ahead log from being folded back.
//
// # How texts are indexed
//
// The file has an index of the texts of events, for searches. It is filled behind
// the appends, when nobody has written for a moment, and once more when a store
// is closed; a batch ends as soon as somebody waits to write. A search reads what
// the index lacks, and so misses nothing. What is erased leaves the index in the
// same transaction. A store that is opened for reading only uses it as it is.
//
// # A caveat of POSIX locks
//
// When any code of a process opens and closes the database file by itself, the
// system drops SQLite's locks of that process. Programs that read the file's
// bytes while a store is open should enable open file description locks first
// (modernc.org/sqlite.OFDLocking) or do it in another process.
package sqlite

// Package sqlite stores a log in one SQLite database file.
//
//	log := eventlog.Open(sqlite.New("s.db"))
//
// Many goroutines and processes of one machine may use the file at the same time.
// Network file systems are not supported. Beside s.db there may be these files:
//
//	s.db-wal, s.db-shm               SQLite's write-ahead log and its index, while the database is open
//	s.db-lock, s.db-lock-next        the store lock
//	s.db-lease                       the locks of the leases
//	s.db-blob-<n>                    a long body before it is in the database
//	s.db.damaged-<16 hex>-<n>.jsonl  a backup copy of a session, made by Replace
//
// # Writes
//
// A store has one writer connection with a queue. When the writer has the database's
// write lock, it commits the whole queue in one transaction with one sync, so
// concurrent appends share the cost of the sync. A caller whose context ends while its
// write is still queued returns at once, and nothing is written. An append compares
// the session's head inside the transaction; a conflict changes nothing.
//
// # Reads
//
// Up to four connections read. Each page has at most 1,000 rows or about 1 MiB and is
// a read transaction of its own. Between two pages a reader has no lock, so a slow
// reader neither blocks writers nor delays a checkpoint of the write-ahead log.
//
// # Text index
//
// The file has a text index for searches. The store updates the index in the
// background when there are no writes for 100 ms, and again on Close. A batch stops
// early when a write is queued. A search reads events that are not indexed yet, so it
// misses nothing. An erasure removes the erased text from the index in the same
// transaction. A read-only store uses the index but never updates it.
//
// # POSIX locks
//
// When a process opens the database file a second time and closes it, the operating
// system drops SQLite's locks of the process. A program that reads the file's bytes
// while a store is open must enable open file description locks first
// (modernc.org/sqlite.OFDLocking) or read the file in another process.
package sqlite

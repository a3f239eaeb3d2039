// Package jsonl stores each session of a log in a text file, one event per line:
// <dir>/<name>.jsonl.
//
//	log := eventlog.Open(jsonl.New("conversations"))
//
// # Guarantees
//
// An append is one write of whole lines under an exclusive flock. The lines are synced
// before the append returns (Options.Sync relaxes this). An error other than
// ErrUnknownOutcome means that nothing was written, and that nothing reappears after a
// crash. If a file can be neither synced nor restored, its session refuses appends
// until the store is reopened.
//
// Damage is reported with file, offset and seq, and never skipped. docs/FORMAT.md,
// chapters 4 and 9, has the details.
//
// # Torn-tail recovery
//
// A process that dies, or a machine that loses power, can leave an unfinished write at
// the end of a file: a torn tail. Recovery takes these steps:
//
//   - tail.go finds the end of the last complete append. hole.go finds holes:
//     blocks that never reached the disk and read as NULs. Complete appends may
//     follow a hole; they belong to the torn tail.
//   - Readers (read.go) stop there. They change nothing.
//   - recovery.go runs before the next append: it saves the torn tail to
//     <name>.torn-<offset>, truncates the file, and refuses appends until an
//     event names the cut.
//   - tailkeeper.go lists, truncates and retires torn tails on request.
//
// A file with complete appends after a bad line has no torn tail: it is damaged, and
// nothing is truncated.
//
// With a relaxed sync policy a loss of power can lose any blocks of the unsynced
// appends. The appends before the first hole survive. At most 4 MiB per session are
// unsynced at any time, so recovery scans only the last 4 MiB.
//
// # Concurrency
//
// Any number of processes may share a directory. Readers take no lock. There is no
// index: a seq is found by binary search in the file, the head by reading the end of
// the file. The first read of a file in a process scans the last 4 MiB for holes.
// Sessions reads only the start and the end of each file. Until a writer truncates the
// tail, it may report a last event that follows a hole.
//
// # Caveats
//
// Use local file systems on Linux and macOS only: flock and the order of writes are
// unreliable on NFS. A redaction writes a new file and renames it over the old one.
// Copies and hard links that you made keep the redacted content.
package jsonl

// Package jsonl keeps every session of a log in one file, a line per event:
// <dir>/<name>.jsonl, readable with any tool that reads text.
//
//	log := eventlog.Open(jsonl.New("conversations"))
//
// # What it promises
//
// An append is one write of whole lines under an exclusive flock, synced to
// disk before it is acknowledged (Options.Sync relaxes that). A process that
// dies, or a machine that loses power, leaves at most one unfinished write
// at the end of a file: readers do not show it, and the next writer saves it
// to <name>.torn-<offset>, cuts it off, and has the next event name it.
// Anything else that is damaged is reported with its file, offset and seq, and
// never skipped. docs/FORMAT.md, chapters 4 and 8, fixes the details.
//
// An error that is not ErrUnknownOutcome means that nothing was written, and
// that nothing comes back after a crash. A session whose file could be neither
// synced nor restored is refused until the store is reopened.
//
// With a relaxed policy a loss of power may take the appends that were not
// synced, and of these any blocks: what is left are the whole appends before the
// first hole. At most 4 MiB of a session wait for a sync, which is how far
// recovery reaches.
//
// Any number of processes may share a directory. Readers take no lock. There
// is no index beside the files: a seq is found by binary search over the
// file, a head by reading the file's end. The first reading of a session in a
// process looks through the last 4 MiB for holes, so that all readings end
// before one. A listing looks at the two ends of a file only: until a writer
// cuts the tail off, it may show a last event that stands behind a hole.
//
// # Caveats
//
// Local file systems of Linux and macOS only: flock and the order of writes
// are not dependable on NFS. Rewrites (redaction) make a new file and rename
// it over the old one: copies and hard links that you keep are yours to clean.
package jsonl

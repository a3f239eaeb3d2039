// Package interop imports the transcripts of other programs into a log. Each
// foreign format is a subpackage that implements Format. This package has the
// parts that formats share: it walks folders, splits files into records, makes
// event ids so that a second import adds nothing, and counts the results in a
// Table.
//
//	table, err := interop.Import(ctx, log, formats.All(), []string{"/home/ada/.claude/projects"})
//
// An import loses no record silently. A record without an event type of its own
// becomes a raw event of type "<format>:<record type>". A record that cannot be
// parsed is rejected, and the table lists its line and offset.
package interop

import (
	"context"
	"iter"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// Format reads one foreign format.
type Format interface {
	// Name is the format's short name. The types of raw events begin with it.
	Name() string
	// Detect reports whether a file is of the format. It sees the file's name and
	// up to 64 KiB of its start; the last line may be incomplete.
	Detect(name string, head []byte) bool
	// Import appends the records of the source that the log does not have yet. A
	// record that cannot be parsed is rejected in the Result, and the import
	// continues; an error says that the import stopped. The Result is valid in
	// either case. Importing again, or importing a longer version, continues.
	Import(ctx context.Context, log *eventlog.Log, src Source) (Result, error)
}

// Declarer is a Format whose files share sessions or build on each other. Import
// orders the files by the ids that they declare.
type Declarer interface {
	// Declare gives the ids that a file owns and needs. Find calls it for every
	// file, several at a time, so it must be much faster than Import. A file that
	// cannot be read declares nothing: Import reports the error.
	Declare(src Source) IDs
}

// Folder is a folder, or a database, with the transcripts of a program: Path in the folder
// that the environment variable names; without it, Path in Home in the user's home folder.
// A Format of a program that has such folders on any system has the method
// Folders() []Folder.
type Folder struct{ Variable, Home, Path string }

// IDs are the ids that a file declares. The id of a session is its id in the log,
// in every format. Other ids begin with the name of their format and a colon.
type IDs struct {
	// Owns are the ids that the file writes to, every session of the log among
	// them. Two files that own one id are never imported at the same time.
	Owns []string
	// Needs are ids of other files: Import imports the owners of an id before the
	// files that need it. An id that no file owns is not waited for, and neither is
	// an id that the file owns itself.
	Needs []string
	// More yields owned ids that are too many to keep, one for each record for
	// example. It may be nil. It is called only if another file, which owns one of
	// Owns too, needs an id that no file has in Owns.
	More iter.Seq[string]
	// Records are hashes of the ids of the file's records, for a program that copies
	// records into other files. Files that have a record in common are imported one after
	// the other: first the file with the oldest record, then the one with the fewest common
	// records, then the one whose newest record is older. So an original comes before its
	// copies. The records are of the times From to To.
	Records  []uint64
	From, To time.Time
}

// Gatherer is a Format that stores one session in many files. One of the files
// represents the others: only that file is imported, and its import reads them all.
type Gatherer interface {
	// Gathered is the path of the file that represents a file. It is empty, or the
	// file's own path, for a file that represents itself. The arguments are those
	// of Detect.
	Gathered(name string, head []byte) string
}

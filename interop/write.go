package interop

import (
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// Writer is a Format whose program goes on with a session that a file brings.
type Writer interface {
	Format
	// Folders are the folders of the program. It finds a file in the first, unless a command
	// imports the file.
	Folders() []Folder
	// Write returns the file that the program reads, and what the file lacks. Equal
	// conversations give equal files.
	Write(c Conversation) (Written, error)
}

// Conversation is a session as a Writer gets it.
type Conversation struct {
	// ID is the id of the new session: a UUID of version 4, or what the method NewID() string
	// of the Writer makes.
	ID string
	// Format is the name of the Format that the session was imported with; empty for a
	// session of a Go program.
	Format string
	Title  string
	// CWD is the working directory in which the program goes on, an absolute path.
	CWD string
	// Folder is where the first of the program's folders is; empty if the file is written
	// elsewhere.
	Folder string
	// At is the time of the file.
	At time.Time
	// History is what the model sees, and Times the time of each entry.
	History []projection.Entry
	Times   []time.Time
	// Contexts has the seqs of the messages that a program wrote in the user's name.
	Contexts map[int64]bool
	// Blob returns the body of an image or a document.
	Blob func(event.BlobRef) ([]byte, error)
}

// Written is a session as a file for a program.
type Written struct {
	// Path is where the program looks for the file, with slashes, below the first of its
	// Folders. The name of the file ends with Conversation.ID, before its extension.
	Path string
	Body []byte
	// Header is how many bytes of Body an import reads each time, because records that the
	// program adds depend on them.
	Header int64
	// Seqs are the seqs of the events that the records of the file come from, in the order of
	// the records. They are nil if an import finds the events of a rewind without them.
	Seqs []int64
	// Losses are what the file lacks: the seqs of the events by kind, 0 if the rendering made
	// the message. The kinds:
	//
	//   - "reasoning": thinking that only its own model can read.
	//   - "system": the text of the system or the developer; the program has its own.
	//   - "context": a context that a program added; the other program adds its own.
	//   - "error_mark": the mark that a result is an error; the text of the result stays.
	//   - "audio", "document": a body; a line of text stays.
	//   - "server_tool", "opaque": a part that only its provider can read.
	//   - "erased": content that was redacted; a line of text stays.
	//   - "interrupted": a call without a result; a result that says so was added.
	Losses map[string][]int64
	// Import is the command that brings the file to the program, without the path of the file;
	// nil for a program that finds the file itself.
	Import []string
	// Command is the name of the program, and the arguments with which it goes on.
	Command []string
}

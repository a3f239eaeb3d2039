package files

import (
	"time"

	"github.com/convlog/convlog/internal/linediff"
)

// Change is what a call did to one file: a read or a change. A call that did something to
// several files has several.
type Change struct {
	// Session stores the call. Seq is the seq of the call, and Result the seq of its result;
	// 0 if it has none.
	Session     string
	Seq, Result int64
	At          time.Time // of the result
	CallID      string
	Tool        string
	Does        Action
	Path        string // empty for a Run or an Agent
	Child       string // the session of an Agent
	To          string // of a Move
	Command     string // of a shell
	// Failed says that the result is an error. Orphaned says that the call was rewound.
	Failed, Orphaned bool
	// Before and After are the file before and after the call, as far as the log tells.
	Before, After State
	// Gap is not nil if the file changed before this call in another way than by a call that
	// names it.
	Gap *Gap

	given []linediff.Hunk // of the arguments or the result, for changes between unknown states
}

// State is the state of a file.
type State struct {
	Text   string
	Known  bool // the log has the text, or the file is absent
	Absent bool // there is no file
}

// Gap is a change of a file that no call names: by a shell command, a person or another
// program.
type Gap struct {
	// After is the seq at which the content was known last.
	After int64
	// Commands are the shell commands since then that may have changed any file, and the ends
	// of sub-agents, by seq.
	Commands []int64
}

// Changes reports whether the call changed its file, as far as the log tells.
func (c *Change) Changes() bool {
	return !c.Failed && c.Does != Read && c.Does != Run && c.Does != Agent
}

// Hunks are the changed lines. Places are unknown, and lines may be missing, if a state is
// unknown.
func (c *Change) Hunks() []linediff.Hunk {
	switch {
	case !c.Changes():
		return nil
	case c.Before.Known && c.After.Known:
		return linediff.Hunks(c.Before.Text, c.After.Text)
	}
	return c.given
}

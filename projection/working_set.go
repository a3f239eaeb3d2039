package projection

import (
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
)

// workingSetSize is the largest number of files in a working set.
const workingSetSize = 5

// workingSetKind is the kind of the context that lists the working set.
const workingSetKind = "working_set"

// workingSet is the files that an agent used before a compaction. The history lists
// them so that the model can read them again. It stays until the next compaction that
// covers events.
type workingSet struct {
	Modified []string `json:"modified,omitzero"`
	Read     []string `json:"read,omitzero"`
}

// newWorkingSet returns the last files of the lists, modified files first. Agents
// list files in the order of use.
func newWorkingSet(read, modified []string) (w workingSet) {
	w.Modified = lastOf(modified, nil, workingSetSize)
	w.Read = lastOf(read, w.Modified, workingSetSize-len(w.Modified))
	return w
}

// lastOf returns the last n files that are not in others, each once, in order.
func lastOf(files, others []string, n int) (last []string) {
	for _, f := range slices.Backward(files) {
		if len(last) < n && f != "" && !slices.Contains(last, f) && !slices.Contains(others, f) {
			last = append(last, f)
		}
	}
	slices.Reverse(last)
	return last
}

func (w workingSet) isZero() bool { return len(w.Modified)+len(w.Read) == 0 }

// message is the message that lists w for the model.
func (w workingSet) message() event.Message {
	var text strings.Builder
	text.WriteString("Files in use before the conversation was compacted:")
	for _, f := range w.Modified {
		text.WriteString("\n- " + f + " (modified)")
	}
	for _, f := range w.Read {
		text.WriteString("\n- " + f + " (read)")
	}
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text.String())}}
}

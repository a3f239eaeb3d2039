package projection

import (
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
)

// workingSetSize is how many files a working set has at most.
const workingSetSize = 5

// workingSetKind is the kind of the context that names the working set.
const workingSetKind = "working_set"

// workingSet is the files that an agent was at when its history was compacted,
// so that the model knows what to look at again. It is fixed until the next
// compaction that says what it covers.
type workingSet struct {
	Modified []string `json:"modified,omitzero"`
	Read     []string `json:"read,omitzero"`
}

// newWorkingSet takes the last files of each list, modified ones before read
// ones: agents list them in the order of use.
func newWorkingSet(read, modified []string) (w workingSet) {
	w.Modified = lastOf(modified, nil, workingSetSize)
	w.Read = lastOf(read, w.Modified, workingSetSize-len(w.Modified))
	return w
}

// lastOf is the last n files that are not among others, each once, in order.
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

// message is what the model is told of w.
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

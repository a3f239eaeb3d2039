package interop

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/scan"
)

// splitter takes JSON apart. It is used by one goroutine at a time.
type splitter struct {
	scan.Scanner
	// members and elements are those found so far.
	members  []Member
	elements []jsontext.Value
	// names are some that were read before: most names of a file are the same few.
	names [64]string
}

// splitters are kept for reuse.
var splitters = sync.Pool{New: func() any { return &splitter{Scanner: scan.Scanner{Spaces: true}} }}

func takeSplitter() *splitter { return splitters.Get().(*splitter) }

// giveBack forgets the text, which may be large, and what was found in it.
func (s *splitter) giveBack() {
	const most = 1 << 10 // of what is kept room for
	s.Begin(nil)
	clear(s.members)
	clear(s.elements)
	s.members, s.elements = s.members[:0], s.elements[:0]
	if cap(s.members) > most || cap(s.elements) > most {
		s.members, s.elements = nil, nil
	}
	splitters.Put(s)
}

// name is a name as a string.
func (s *splitter) name(b []byte) string {
	const longest = 64 // of those that are kept
	if len(b) == 0 || len(b) > longest {
		return string(b)
	}
	known := &s.names[(len(b)*31+int(b[0])*7+int(b[len(b)-1]))%len(s.names)]
	if *known != string(b) {
		*known = string(b)
	}
	return *known
}

package rawjson

import (
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// splitter is a scanner with buffers. One goroutine uses it at a time.
type splitter struct {
	scanner
	members  []Member
	elements []jsontext.Value
	// names caches member names, because most objects of a file have the same names.
	names [64]string
	// unescaped is the content of the last string with escapes.
	unescaped []byte
}

var splitters = sync.Pool{New: func() any { return &splitter{scanner: scanner{allowSpace: true}} }}

func takeSplitter() *splitter { return splitters.Get().(*splitter) }

// release drops all references to the text, which may be large, and returns s to the
// pool.
func (s *splitter) release() {
	const most = 1 << 10 // capacity of buffers that stay allocated
	s.reset(nil)
	clear(s.members)
	clear(s.elements)
	s.members, s.elements = s.members[:0], s.elements[:0]
	if cap(s.members) > most || cap(s.elements) > most {
		s.members, s.elements = nil, nil
	}
	if cap(s.scanner.names) > most {
		s.scanner.names = nil
	}
	if cap(s.unescaped) > most<<6 {
		s.unescaped = nil
	}
	splitters.Put(s)
}

// name converts a member name to a string. It returns a cached string if possible.
func (s *splitter) name(b []byte) string {
	const longest = 64 // longest cached name
	if len(b) == 0 || len(b) > longest {
		return string(b)
	}
	cached := &s.names[(len(b)*31+int(b[0])*7+int(b[len(b)-1]))%len(s.names)]
	if *cached != string(b) {
		*cached = string(b)
	}
	return *cached
}

// unquote returns the text of a JSON string.
func (s *splitter) unquote(value []byte) (text string, sure bool) {
	s.reset(value)
	content, sure := Cursor{s}.Text()
	if !sure || s.at != len(value) || !printable(value) {
		return "", false
	}
	return string(content), true
}

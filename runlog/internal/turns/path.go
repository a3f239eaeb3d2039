package turns

import "github.com/convlog/convlog/event"

// Path reports for ascending seqs whether they are on a path.
type Path struct {
	rest []event.Stretch
}

// NewPath returns a Path over the stretches of a path, oldest first.
func NewPath(path []event.Stretch) Path { return Path{path} }

// Has reports whether seq is on the path. seq is not below the seq of the last call.
func (p *Path) Has(seq int64) bool {
	for len(p.rest) > 0 && p.rest[0].To < seq {
		p.rest = p.rest[1:]
	}
	return len(p.rest) > 0 && p.rest[0].From <= seq
}

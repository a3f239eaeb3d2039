package backward

import (
	"fmt"

	"github.com/convlog/convlog/event"
)

// Walk follows a path backward through events that come newest first. Events of
// other branches may be among them.
type Walk struct {
	// Next is the seq of the next event of the path; 0 at its start. Set it to the
	// last event of the path before the first step.
	Next int64
}

// Step reports whether e is the next event of the path. If so, the walk moves to the
// parent of e.
func (w *Walk) Step(e *event.Event) (onPath bool, err error) {
	if e == nil {
		return false, fmt.Errorf("%w: the event of Walk.Step", event.ErrNilArgument)
	}
	if e.Seq != w.Next {
		return false, nil
	}
	w.Next, err = e.Parent()
	return true, err
}

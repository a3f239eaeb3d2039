package document

import (
	"slices"
	"time"
)

// time is when something was said, for all that is known: when it says, else when
// the item before it was, else when the session began.
func (a *adding) time(own time.Time) time.Time {
	for _, t := range []time.Time{own, a.now, a.doc.At} {
		if !t.IsZero() {
			return t
		}
	}
	return a.file.At
}

// begun is when the session began.
func (a *adding) begun() time.Time {
	for i := range a.doc.Items {
		if t := a.doc.Items[i].At; a.doc.At.IsZero() && !t.IsZero() {
			return t
		}
	}
	return a.time(time.Time{})
}

// newest is when the last item that says so was said.
func (a *adding) newest() time.Time {
	for i := range slices.Backward(a.doc.Items) {
		if t := a.doc.Items[i].At; !t.IsZero() {
			return t
		}
	}
	return a.time(time.Time{})
}

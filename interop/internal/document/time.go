package document

import (
	"slices"
	"time"
)

// time is the time of an item: its own, or else the time of the item before or of the
// session. It is zero if the source has no dates.
func (a *adding) time(own time.Time) time.Time {
	for _, t := range []time.Time{own, a.now, a.doc.At} {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// startTime is the time of the session_started.
func (a *adding) startTime() time.Time {
	if f := a.doc.facts; f != nil && a.doc.At.IsZero() && !f.first.IsZero() {
		return f.first
	}
	for i := range a.doc.Items {
		if t := a.doc.Items[i].At; a.doc.At.IsZero() && !t.IsZero() {
			return t
		}
	}
	return a.time(time.Time{})
}

// newestTime is the time of the last item that has one.
func (a *adding) newestTime() time.Time {
	if f := a.doc.facts; f != nil && !f.newest.IsZero() {
		return f.newest
	}
	for i := range slices.Backward(a.doc.Items) {
		if t := a.doc.Items[i].At; !t.IsZero() {
			return t
		}
	}
	return a.time(time.Time{})
}

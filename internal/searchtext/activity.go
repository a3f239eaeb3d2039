package searchtext

import "time"

// Activity is the time of a session's newest event, to the microsecond.
type Activity struct {
	Session string
	Last    time.Time
}

// ByActivity orders sessions by the time of their newest event, the latest first,
// then by id.
func ByActivity(a, b Activity) int {
	if c := b.Last.Compare(a.Last); c != 0 {
		return c
	}
	if a.Session < b.Session {
		return -1
	}
	return 1
}

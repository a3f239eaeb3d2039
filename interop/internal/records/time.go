package records

import "time"

// Time parses the first text that is an RFC 3339 time; zero if none is.
func Time(texts ...string) time.Time {
	for _, text := range texts {
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

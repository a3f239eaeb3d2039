package flow

import "time"

// Retry says how often an effect that failed is tried. The zero Retry is once.
type Retry struct {
	// Attempts is the number of attempts; 1 if 0.
	Attempts int
	// First is the delay after the first attempt, 1 s if 0. It doubles with each attempt,
	// up to Max, 1 min if 0, and varies by a quarter. A longer delay that the error asks
	// for (RetryError) counts.
	First, Max time.Duration
	// If reports whether an error is worth another attempt; nil is yes, unless the error is
	// permanent.
	If func(error) bool
}

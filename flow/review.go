package flow

import (
	"time"

	"github.com/convlog/convlog/event"
)

// Review asks a person before an effect runs. The turn hibernates until all reviews of a
// batch are answered.
type Review struct {
	// Prompt is the question to the person.
	Prompt string
	// Detail is shown with the question. It must encode to JSON.
	Detail any
	// Expires is how long an answer is accepted; 0 is for ever.
	Expires time.Duration
	// Lapse says what happens after that; empty is event.LapseWait.
	Lapse event.Lapse
}

package estimate

import (
	"fmt"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// An Estimator of many answers keeps few of them, and corrects the newest ones.
func TestEstimatorKeepsTheNewestAnswers(t *testing.T) {
	x := Estimator{Cost: func(_ string, _ time.Time, u event.Usage) (event.Cost, bool) { return event.Cost(u.OutputTokens), true }}
	charge := func(i int, tokens int64, answers int) projection.Charge {
		c := projection.Charge{Response: projection.Response{ID: fmt.Sprint("message ", i), Usage: event.Usage{OutputTokens: tokens}}}
		c.Responses = answers
		x.Add(&event.Event{}, &c)
		return c
	}
	const answers, pieces = 10_000, 60 // a Meter charges the newest 64 again
	for i := range answers {
		if c := charge(i, 5, 1); c.Estimate != 5 || c.Estimated != 1 {
			t.Fatalf("answer %d: %+v", i, c.Spend)
		}
		if i >= pieces {
			if c := charge(i-pieces, 7, 0); c.Estimate != 2 || c.Estimated != 0 {
				t.Fatalf("the second piece of answer %d: %+v", i-pieces, c.Spend)
			}
		}
		if n := len(x.answers) + len(x.order); n > 8*newestAnswers {
			t.Fatalf("%d ids are kept", n)
		}
	}
}

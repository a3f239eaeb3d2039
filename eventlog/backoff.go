package eventlog

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the wait of a leader that lost the head of its session to other
// processes. Without it, many processes on one session would refuse each other's
// appends again and again.
type backoff struct{ lost int }

// maxWait bounds one wait, so that a leader soon tries again after the others stop. A
// distant server may need more: four times the time of an append.
const maxWait = 40 * time.Millisecond

// wait returns after a random time, or when ctx ends. The longest time quadruples with
// each loss. It begins with four times the time that the lost append took: a store that answers
// in microseconds needs short waits, and a distant server needs long ones. The first
// loss costs no wait, because most losses are single ones.
func (b *backoff) wait(ctx context.Context, took time.Duration) {
	if b.lost++; b.lost == 1 {
		return
	}
	longest := min(max(took, time.Microsecond)<<min(2*(b.lost-1), 10), max(maxWait, 4*took))
	pause(ctx, rand.N(longest))
}

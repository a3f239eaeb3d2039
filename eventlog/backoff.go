package eventlog

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is the wait of a leader that lost the head of its session to other
// processes. Without it, many processes on one session would refuse each other's
// appends again and again.
type backoff struct {
	lost  int
	first time.Time // when the first of them was lost
}

// maxWait bounds one wait, so that a leader soon tries again after the others stop. A
// distant server may need more: four times the time of an append.
const maxWait = 80 * time.Millisecond

// maxWaiting bounds the waits of one append together, or ten times the time of an append.
// After it a leader tries without waiting, and soon gets ahead of leaders that wait.
const maxWaiting = 500 * time.Millisecond

// wait returns after a random time, or when ctx ends. The longest time begins with four
// times the time that the lost append took, because a store that answers in microseconds
// needs short waits, and a distant server needs long ones. It quadruples with each loss.
// The first loss costs no wait, because most losses are single ones.
func (b *backoff) wait(ctx context.Context, took time.Duration) {
	if b.lost++; b.lost == 1 {
		b.first = time.Now()
		return
	}
	if time.Since(b.first) > max(maxWaiting, 10*took) {
		return
	}
	longest := min(max(took, time.Microsecond)<<min(2*(b.lost-1), 10), max(maxWait, 4*took))
	pause(ctx, rand.N(longest))
}

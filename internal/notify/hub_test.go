package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// script is a Poller that returns the results of a list, then Idle.
type script struct {
	polls  []func() (Pace, error)
	calls  int
	closed bool
}

func (s *script) Poll(context.Context) (Pace, error) {
	s.calls++
	if s.calls > len(s.polls) {
		return Idle, nil
	}
	return s.polls[s.calls-1]()
}

func (s *script) Close() { s.closed = true }

func idle() (Pace, error) { return Idle, nil }

// collect returns the first n elements and the error that ended the sequence.
func collect(ctx context.Context, h *Hub, n int) (got []string, err error) {
	for session, err := range h.Changes(ctx, nil) {
		if err != nil {
			return got, err
		}
		if got = append(got, session); len(got) == n {
			break
		}
	}
	return got, nil
}

// An error of a poll ends all listeners. A new listener polls anew.
func TestFailedPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("disk")
		var scripts []*script
		h := New(func(func(string)) Poller {
			s := &script{polls: []func() (Pace, error){idle, idle, func() (Pace, error) { return 0, failure }}}
			scripts = append(scripts, s)
			return s
		})
		ended := make(chan error)
		for range 2 {
			go func() {
				_, err := collect(t.Context(), h, 2)
				ended <- err
			}()
		}
		for range 2 {
			if err := <-ended; !errors.Is(err, failure) {
				t.Errorf("got error %v, want %v", err, failure)
			}
		}
		if got, err := collect(t.Context(), h, 1); err != nil || !slices.Equal(got, []string{""}) {
			t.Errorf("a new listener: %q, %v", got, err)
		}
		h.Close()
		synctest.Wait()
		for i, s := range scripts {
			if !s.closed {
				t.Errorf("poller %d is not closed", i)
			}
		}
		if len(scripts) != 2 {
			t.Errorf("%d pollers, want 2", len(scripts))
		}
	})
}

// A poller serves the listeners that come within idleTime of each other. It ends that long
// after the last one, or with the hub; after Close no poller begins.
func TestIdlePoller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pollers []*script
		h := New(func(func(string)) Poller {
			pollers = append(pollers, &script{})
			return pollers[len(pollers)-1]
		})
		listen := func(wantPollers int) {
			t.Helper()
			if got, err := collect(t.Context(), h, 1); err != nil || !slices.Equal(got, []string{""}) {
				t.Errorf("got %q, %v", got, err)
			}
			synctest.Wait()
			if len(pollers) != wantPollers {
				t.Errorf("%d pollers, want %d", len(pollers), wantPollers)
			}
		}
		listen(1)
		for range 5 {
			time.Sleep(idleTime - time.Millisecond)
			listen(1)
		}
		long, leave := context.WithCancel(t.Context())
		go func() { _, _ = collect(long, h, 2) }()
		time.Sleep(3 * idleTime)
		listen(1)
		leave()
		time.Sleep(idleTime + longPause)
		synctest.Wait()
		if !pollers[0].closed {
			t.Error("the poller runs without a listener")
		}
		calls := pollers[0].calls
		listen(2)
		h.Close()
		if !pollers[1].closed || pollers[0].calls != calls {
			t.Error("a poller runs on")
		}
		after, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if got, err := collect(after, h, 1); len(got) > 0 || err == nil || len(pollers) != 2 {
			t.Errorf("after Close: %q, %v, %d pollers", got, err, len(pollers))
		}
	})
}

// Changes before the first poll are not yielded: the caller lists them.
func TestFirstPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(func(publish func(string)) Poller {
			return &script{polls: []func() (Pace, error){
				func() (Pace, error) { publish("before"); return Idle, nil },
				func() (Pace, error) { publish("after"); return Busy, nil },
			}}
		})
		defer h.Close()
		got, err := collect(t.Context(), h, 2)
		if err != nil || !slices.Equal(got, []string{"", "after"}) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// A slow caller gets each session once. More sessions than the limit become "".
func TestPendingChanges(t *testing.T) {
	h := New(nil)
	var got []string
	for session, err := range h.Changes(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, session)
		switch len(got) {
		case 1:
			h.Publish("b")
			h.Publish("a")
			h.Publish("b")
		case 3:
			for n := range maxPending + 2 {
				h.Publish(fmt.Sprint(n))
			}
		case 4:
			h.Publish("c")
		}
		if len(got) == 5 {
			break
		}
	}
	if !slices.Equal(got, []string{"", "a", "b", "", "c"}) {
		t.Errorf("got %q", got)
	}
}

// The pause grows while nothing changes. It depends on the time of a poll.
func TestPauses(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		pace                Pace
		took, earlier, want time.Duration
	}{
		{Idle, 0, 0, shortPause},
		{Idle, 0, 8 * ms, 16 * ms},
		{Idle, 0, 80 * ms, longPause},
		{Idle, 20 * ms, 80 * ms, 160 * ms},
		{Idle, 20 * ms, 900 * ms, 1000 * ms},
		{Busy, 0, 100 * ms, shortPause},
		{Busy, 20 * ms, 1000 * ms, 200 * ms},
		{Backstop, 0, 0, backstopPause},
		{Backstop, time.Second, 0, 50 * time.Second},
	} {
		if got := pauseAfter(c.pace, c.took, c.earlier); got != c.want {
			t.Errorf("pauseAfter(%v, %v, %v) = %v, want %v", c.pace, c.took, c.earlier, got, c.want)
		}
	}
}

package flow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
)

// crash is an action at an append.
type crash int

const (
	noCrash       crash = iota
	crashBefore         // the process is killed before the append is stored
	crashAfter          // the process is killed after it
	unknownBefore       // the append is not stored, and its outcome is unknown
	unknownAfter        // the append is stored, and its outcome is unknown
)

// crashStore is a process's handle of a store: its n-th append crashes.
type crashStore struct {
	*memory.Store
	mu    sync.Mutex
	n     int
	how   crash
	fired bool
}

func (s *crashStore) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	if s.n != 0 || s.how == noCrash {
		return s.Store.Append(ctx, session, expect, events, durable)
	}
	s.fired = true
	if s.how == crashAfter || s.how == unknownAfter {
		if err := s.Store.Append(ctx, session, expect, events, durable); err != nil {
			return err
		}
	}
	if s.how == crashBefore || s.how == crashAfter {
		s.Store.Close() // its leases end
		return eventlog.ErrClosed
	}
	return &eventlog.UnknownOutcomeError{Session: session, Head: expect, Cause: errors.New("no answer")}
}

func newWorld(t *testing.T, checkpoint flow.Checkpoint) *world {
	w := &world{t: t, runs: map[string]map[string]int{}, seen: map[string]string{}, sent: map[string]bool{}, data: memory.New(), checkpoint: checkpoint}
	w.log = eventlog.Open(w.data)
	t.Cleanup(func() { w.log.Close() })
	return w
}

// crashing runs processes: the first one crashes at its n-th append.
func (w *world) crashing(n int, how crash) (fired bool) {
	s := &crashStore{Store: w.data.Handle(), n: n, how: how}
	err := w.process(s)
	fired = s.fired
	for i := 0; err != nil && i < 5; i++ {
		if i > 0 {
			w.t.Logf("process %d: %v", i, err)
		}
		if !fired {
			w.t.Fatal(err)
		}
		err = w.process(&crashStore{Store: w.data.Handle()})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return fired
}

// executions is how often each effect ran, by name.
func (w *world) executions() map[string]int {
	out := map[string]int{}
	for name, keys := range w.runs {
		for _, n := range keys {
			out[name] += n
		}
	}
	return out
}

// The long form crashes at more appends. Steps of 1 test each append, and take minutes.
func TestACrashAtAnAppend(t *testing.T) {
	for _, checkpoint := range []flow.Checkpoint{0, flow.BeforeEachEffect} {
		var want string
		var plain *world
		synctest.Test(t, func(t *testing.T) {
			plain = newWorld(t, checkpoint)
			plain.crashing(0, noCrash)
			want = plain.final()
			plain.replay()
		})
		if t.Failed() {
			t.Fatal("the run without a crash")
		}
		steps := map[crash]int{crashBefore: 13, crashAfter: 9, unknownBefore: 47, unknownAfter: 23}
		for how, name := range map[crash]string{crashBefore: "before", crashAfter: "after", unknownBefore: "unknown before", unknownAfter: "unknown after"} {
			fired, most := true, testsize.Pick(1, 2, 1_000)
			step := testsize.Pick(200, 200, steps[how]+11*int(checkpoint))
			for i, n := 0, testsize.Pick(80, 60, 1); fired && i < most; i, n = i+1, n+step {
				t.Run(fmt.Sprintf("checkpoint %d/%s/%d", checkpoint, name, n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, checkpoint)
						fired = w.crashing(n, how)
						w.compare(plain, want)
						w.replay()
					})
				})
			}
		}
	}
}

// reconciled is the part of the state that a reconciled payment lacks.
const reconciled = 100

// compare compares the end of a world with a run without a crash. An attempt
// that was killed before it ran counts for its effect, so an effect may run less often.
func (w *world) compare(plain *world, want string) {
	got := w.final()
	if w.byHand {
		got = strings.Replace(got, fmt.Sprint(93390-reconciled), "93390", 1)
	}
	if got != want {
		w.t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ran, runs := w.executions(), plain.executions()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		extra := ran[name] - runs[name]
		if name == "pay" && extra != 0 || extra < -1 || extra > 1 {
			w.t.Errorf("%s ran %d times, want %d", name, ran[name], runs[name])
		}
		if len(w.runs[name]) != len(plain.runs[name]) {
			w.t.Errorf("%s has %d keys, want %d", name, len(w.runs[name]), len(plain.runs[name]))
		}
	}
}

// replay runs the turns again with the recorded session. The turn function sees the same,
// and no effect runs.
func (w *world) replay() {
	before := w.executions()
	w.replaying = true
	a := &flow.Agent[notes]{Name: "a", Turn: w.turn}
	a.Options.InProcess = time.Millisecond
	r, err := flowtest.Run(w.t.Context(), a, w.log, "s")
	if r.Log != nil {
		defer r.Log.Close()
	}
	if err != nil || r.Turns != 4 || r.Open {
		w.t.Errorf("the replay: %v, %+v", err, r)
	}
	if after := w.executions(); !maps.Equal(before, after) {
		w.t.Errorf("effects ran in the replay: %v, before %v", after, before)
	}
}

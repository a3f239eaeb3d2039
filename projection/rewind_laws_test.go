package projection_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// settled are the states of a session without what says that its head moved:
// the time of the last event, when and why the other branches were left, and
// what the turn was left and found again with.
func (l *life) settled(name string) map[string]string {
	l.t.Helper()
	loaded, err := projection.LoadSet(bg, l.log, name, everything)
	l.allow(err)
	all := l.statesOf(loaded)
	delete(all, "info")
	branches, _ := projection.State(loaded, projection.Branches)
	tips := []int64{branches.Tip}
	for _, o := range branches.Orphaned {
		tips = append(tips, o.Tip)
	}
	slices.Sort(tips[1:])
	all["branches"] = fmt.Sprint(tips)
	calls, _ := projection.State(loaded, projection.Calls)
	without := *calls
	without.SessionID = "" // who has the last word
	if without.Turn != nil {
		turn := *without.Turn
		turn.Left, without.Turn = nil, &turn
	}
	text, err := json.Marshal(without)
	l.allow(err)
	all["calls"] = string(text)
	pending, err := projection.LoadPending(bg, l.log, name)
	l.allow(err)
	all["pending"] = fmt.Sprint(pending.IsZero(), pending.Calls, pending.Waits, pending.Turn != nil, pending.Cursor)
	return all
}

// Rewinding and recovering is the identity, on every projection.
func TestRewindThenRecoverIsTheIdentity(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		for _, name := range l.names {
			before, was := l.settled(name), l.head(name).Seq
			branches, err := projection.Load(bg, l.log, name, projection.Branches)
			l.allow(err)
			to := rapid.Int64Range(0, was).Draw(r, "to")
			_, err = fork.Rewind(bg, l.log, name, fork.AtSeq(to), fork.RewindOptions{})
			l.allow(err, fork.ErrNoMove, fork.ErrInsideAppend)
			if err != nil {
				same(r, name+" that did not move", was, l.head(name).Seq)
				continue
			}
			after, err := projection.Load(bg, l.log, name, projection.Branches)
			l.allow(err)
			if len(after.State.Orphaned) == len(branches.State.Orphaned)+1 { // what the rewind left
				_, err = fork.Recover(bg, l.log, name, fork.RewindOptions{})
			} else { // it went on to what had been left before
				_, err = fork.RecoverTo(bg, l.log, name, was, fork.RewindOptions{})
				if errors.Is(err, fork.ErrNoMove) {
					continue
				}
			}
			l.allow(err)
			same(r, fmt.Sprintf("%s, rewound to %d and recovered", name, to), before, l.settled(name))
		}
	})
}

// Whatever was claimed, spent and done stays, wherever the head goes.
func TestRecordsSurviveAnyRewind(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		for _, name := range l.names {
			before := l.states(name, projection.Options{})
			report, err := projection.LoadCost(bg, l.log, name)
			l.allow(err)
			effects := l.effectsOf(name)
			for range 3 {
				l.append(name, event.New(event.HeadMove{To: rapid.Int64Range(0, l.head(name).Seq).Draw(r, "to")}))
				after := l.states(name, projection.Options{})
				for _, fact := range []string{"usage", "control", "children"} {
					same(r, fact+" of "+name, before[fact], after[fact])
				}
				same(r, "effects of "+name, effects, l.effectsOf(name))
				now, err := projection.LoadCost(bg, l.log, name)
				l.allow(err)
				same(r, "own cost of "+name, report.Own, now.Own)
				same(r, "what is on the path and what is not", report.Own.Cost, now.Path.Cost-now.Inherited.Cost+now.Orphaned.Cost)
			}
		}
	})
}

// A log that ends at an event, as one that was cut there, is the session of
// then: inside a turn, between a call and its result, behind any snapshot.
func TestALogThatIsCutIsTheSessionOfThen(t *testing.T) {
	onLives(t, func(r *rapid.T, l *life) {
		var text strings.Builder
		l.allow(transfer.Export(bg, l.log, &text, "s0"))
		var stream []byte
		for line := range strings.Lines(text.String()) {
			stream = append(stream, line...)
			e, err := event.Parse([]byte(strings.TrimSuffix(line, "\n")), "")
			if strings.HasPrefix(line, `{"blob"`) || err == nil && e.More() > 0 {
				continue // the append is not whole
			}
			l.allow(err)
			log := eventlog.Open(memory.New())
			_, err = transfer.Import(bg, log, bytes.NewReader(stream))
			l.allow(err)
			cut := &life{garden: &garden{t: r, log: log}}
			same(r, fmt.Sprintf("cut at %d", e.Seq), l.states("s0", projection.Options{At: e.Seq}), cut.states("s0", projection.Options{}))
			l.allow(log.Close())
		}
	})
}

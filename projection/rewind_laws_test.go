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
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
)

// statesWithoutMoves returns the states of a session without the traces of a move:
// the time of the last event, the labels of the orphaned branches, and the ranges
// that the turn left.
func statesWithoutMoves(l *garden.Life, name string) map[string]string {
	l.T.Helper()
	loaded, err := projection.LoadSet(garden.Bg, l.Log, name, garden.Everything)
	l.Allow(err)
	all := l.StatesOf(loaded)
	delete(all, "info")
	branches, _ := projection.State(loaded, projection.Branches())
	tips := []int64{branches.Tip}
	for _, o := range branches.Orphaned {
		tips = append(tips, o.Tip)
	}
	slices.Sort(tips[1:])
	all["branches"] = fmt.Sprint(tips)
	calls, _ := projection.State(loaded, projection.Calls())
	without := *calls
	without.SessionID = "" // who has the last word
	if without.Turn != nil {
		turn := *without.Turn
		turn.Left, without.Turn = nil, &turn
	}
	text, err := json.Marshal(without)
	l.Allow(err)
	all["calls"] = string(text)
	pending, err := projection.LoadPending(garden.Bg, l.Log, name)
	l.Allow(err)
	all["pending"] = fmt.Sprint(pending.IsZero(), pending.Calls, pending.Cursor, pending.Resumable(), work(pending))
	return all
}

// Rewinding and recovering is the identity, on every projection.
func TestRewindThenRecoverIsTheIdentity(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			before, was := statesWithoutMoves(l, name), l.Head(name).Seq
			branches, err := projection.Load(garden.Bg, l.Log, name, projection.Branches())
			l.Allow(err)
			to := rapid.Int64Range(0, was).Draw(r, "to")
			_, err = fork.Rewind(garden.Bg, l.Log, name, fork.AtSeq(to))
			l.Allow(err, fork.Error("no_move"), fork.Error("inside_append"))
			if err != nil {
				garden.Same(r, name+" that did not move", was, l.Head(name).Seq)
				continue
			}
			after, err := projection.Load(garden.Bg, l.Log, name, projection.Branches())
			l.Allow(err)
			if len(after.State.Orphaned) == len(branches.State.Orphaned)+1 { // what the rewind left
				_, err = fork.Recover(garden.Bg, l.Log, name)
			} else { // it went on to what had been left before
				_, err = fork.Rewind(garden.Bg, l.Log, name, fork.AtSeq(was), fork.Options{Force: true})
				if errors.Is(err, fork.Error("no_move")) {
					continue
				}
			}
			l.Allow(err)
			garden.Same(r, fmt.Sprintf("%s, rewound to %d and recovered", name, to), before, statesWithoutMoves(l, name))
		}
	})
}

// A rewind changes no claims, spend and effects.
func TestRecordsSurviveAnyRewind(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			before := l.States(name, projection.Options{})
			report, err := stats.LoadCost(garden.Bg, l.Log, name)
			l.Allow(err)
			effects := l.EffectsOf(name)
			for range 3 {
				l.Append(name, event.New(event.HeadMove{To: rapid.Int64Range(0, l.Head(name).Seq).Draw(r, "to")}))
				after := l.States(name, projection.Options{})
				for _, fact := range []string{"usage", "control", "children"} {
					garden.Same(r, fact+" of "+name, before[fact], after[fact])
				}
				garden.Same(r, "effects of "+name, effects, l.EffectsOf(name))
				now, err := stats.LoadCost(garden.Bg, l.Log, name)
				l.Allow(err)
				garden.Same(r, "own cost of "+name, report.Own, now.Own)
				garden.Same(r, "what is on the path and what is not", report.Own.Cost, now.Path.Cost-now.Inherited.Cost+now.Orphaned.Cost)
			}
		}
	})
}

// A log that was truncated after an event equals the session as of this event: inside
// a turn, between a call and its result, and after a snapshot.
func TestATruncatedLogEqualsTheEarlierSession(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		var text strings.Builder
		l.Allow(transfer.Export(garden.Bg, l.Log, &text, "s0"))
		var stream []byte
		unnamed := map[int64]bool{} // redacted events that no redacted event names yet
		for line := range strings.Lines(text.String()) {
			stream = append(stream, line...)
			e, err := event.Parse([]byte(strings.TrimSuffix(line, "\n")), "")
			if e.Redacted() {
				unnamed[e.Seq] = true
			}
			if note, ok, err := event.Decode[event.RedactionNote](&e); ok && err == nil && !e.Copied() {
				for _, seq := range note.Seqs {
					delete(unnamed, seq)
				}
			}
			if strings.HasPrefix(line, `{"blob"`) || err == nil && e.More() > 0 {
				continue // the append is not whole
			}
			l.Allow(err)
			log := eventlog.Open(memory.New())
			_, err = transfer.Import(garden.Bg, log, bytes.NewReader(stream))
			if len(unnamed) > 0 && errors.Is(err, eventlog.ErrCorrupt) {
				continue // cut between an erased event and the event that names it
			}
			l.Allow(err)
			cut := &garden.Life{Garden: &garden.Garden{T: r, Log: log}}
			garden.Same(r, fmt.Sprintf("cut at %d", e.Seq), l.States("s0", projection.Options{At: e.Seq}), cut.States("s0", projection.Options{}))
			l.Allow(log.Close())
		}
	})
}

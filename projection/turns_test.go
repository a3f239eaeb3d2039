package projection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
)

// The rules of "Turns and runs" in docs/FORMAT.md.

func controlOf(g *garden.Garden, name string) projection.ControlState {
	g.T.Helper()
	v, err := projection.Load(garden.Bg, g.Log, name, projection.Control())
	g.Allow(err)
	return v.State
}

func pendingOf(g *garden.Garden, name string) projection.Pending {
	g.T.Helper()
	p, err := projection.LoadPending(garden.Bg, g.Log, name)
	g.Allow(err)
	return p
}

// work lists the claims, reviews, answers, effects and inputs of a turn and its runner.
func work(p projection.Pending) string {
	var list []string
	if p.Turn != nil {
		list = append(list, "turn")
	}
	if p.Aborted != nil {
		list = append(list, "aborted turn")
	}
	if p.Claim != nil {
		list = append(list, fmt.Sprint("claim ", p.Claim.Epoch))
	}
	if p.Cursor != nil {
		list = append(list, fmt.Sprintf("cursor %s inherited %v", p.Cursor.Cursor.ID, p.Cursor.Inherited))
	}
	for _, a := range p.Approvals {
		list = append(list, "review "+a.InterruptID)
	}
	for _, a := range p.Answers {
		list = append(list, fmt.Sprintf("answer %s %s by %d", a.InterruptID, a.Decision, a.Seq))
	}
	for _, w := range p.Waits {
		list = append(list, "wait "+w.WaitID)
	}
	for _, x := range p.Effects {
		text := fmt.Sprintf("open %s attempt %d", x.Ordinal, x.Attempt)
		if !x.RetryAt.IsZero() {
			text += fmt.Sprint(" due ", x.RetryAt.Unix())
		}
		if x.Inherited {
			text += " inherited"
		}
		list = append(list, text)
	}
	for _, d := range p.Done {
		list = append(list, fmt.Sprintf("done %s attempt %d by %d", d.Ordinal, d.Attempt, d.Completed))
	}
	for _, in := range p.Inbox {
		list = append(list, "input "+in.InputID)
	}
	return strings.Join(list, ", ")
}

// plan is a turn in session "s", with its events.
type plan struct {
	*garden.Garden
	turn ulid.ULID
}

func (p *plan) intend(ordinal string, attempt int) event.Payload {
	return event.EffectIntent{Key: "k" + ordinal, TurnID: p.turn, Ordinal: ordinal, Attempt: attempt, Class: event.EffectPure}
}

func (p *plan) complete(ordinal string, attempt int) event.Payload {
	return event.EffectCompletion{Key: "k" + ordinal, TurnID: p.turn, Ordinal: ordinal, Attempt: attempt}
}

func (p *plan) retryAt(ordinal string, attempt int, at int64) event.Payload {
	return event.EffectCompletion{Key: "k" + ordinal, TurnID: p.turn, Ordinal: ordinal, Attempt: attempt, RetryAt: time.Unix(at, 0),
		Error: &event.EffectError{Code: "busy"}}
}

func (p *plan) review(id string) event.Payload {
	return event.ApprovalRequest{InterruptID: id, TurnID: p.turn, CursorID: "x", Ordinal: "1"}
}

func (p *plan) hibernate(cursor string) event.Payload {
	return event.TurnHibernation{TurnID: p.turn, Cursor: event.Cursor{ID: cursor, Kind: "review"}}
}

func (p *plan) end(status event.TurnStatus) event.Payload {
	return event.TurnCompletion{TurnID: p.turn, Status: status}
}

func decide(id string, d event.Decision) event.Payload {
	return event.ApprovalResolution{InterruptID: id, Decision: d}
}

func TestRulesOfTurns(t *testing.T) {
	other := event.NewID()
	for _, tt := range []struct {
		name string
		do   func(p *plan) // after the turn_started, which is event 1
		want string
	}{
		{"a turn", func(p *plan) {}, "turn"},
		{"its end", func(p *plan) { do(p.Garden, p.end("completed")) }, ""},
		{"an end that names no turn", func(p *plan) { do(p.Garden, event.TurnCompletion{Status: "completed"}) }, ""},
		{"the end of another turn", func(p *plan) { do(p.Garden, event.TurnCompletion{TurnID: other, Status: "completed"}) }, "turn"},
		{"another turn", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.review("i"))
			do(p.Garden, event.TurnStart{Index: 1}, event.TurnCompletion{Status: "completed"})
		}, ""},
		{"another turn on another branch", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.intend("2", 1), p.complete("2", 1), p.review("i"), p.review("j"), decide("j", event.Approved)) // 7
			do(p.Garden, event.HeadMove{To: 0}, event.TurnStart{Index: 1}, p.intend("3", 1), event.HeadMove{To: 7})
		}, "turn, review i, answer j approved by 7, open 1 attempt 1, open 3 attempt 1, done 2 attempt 1 by 4"},
		{"a retry", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.intend("2", 1), p.end("failed"), event.HeadMove{To: 0}, event.HeadMove{To: 1})
		}, "turn, open 2 attempt 1, done 1 attempt 1 by 3"},
		{"a failed turn", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.review("i"), p.end("failed"), event.HeadMove{To: 0})
		}, "done 1 attempt 1 by 3"},
		{"a retry of a completed turn", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.review("i"), decide("i", event.Denied), p.end("completed"), event.HeadMove{To: 2})
		}, "turn, answer i denied by 5, done 1 attempt 1 by 3"},
		{"a retry after another turn", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.end("failed"), event.HeadMove{To: 0}, event.TurnStart{}, event.HeadMove{To: 1})
		}, "turn, done 1 attempt 1 by 3"},
		{"a retry that ended", func(p *plan) {
			do(p.Garden, p.end("failed"), event.HeadMove{To: 1}, p.end("completed"))
		}, ""},
		{"an abort", func(p *plan) { do(p.Garden, event.Abort{}) }, "aborted turn"},
		{"an abort of the turn", func(p *plan) { do(p.Garden, event.Abort{TurnID: p.turn}, event.RunClaim{Epoch: 1}) }, "aborted turn, claim 1"},
		{"an abort of another turn", func(p *plan) { do(p.Garden, event.Abort{TurnID: other}) }, "turn"},
		{"an abort that was carried out", func(p *plan) { do(p.Garden, event.Abort{}, p.end("aborted")) }, ""},
		{"a retry of an aborted turn", func(p *plan) { do(p.Garden, event.Abort{}, event.HeadMove{To: 1}) }, "turn"},

		{"a result", func(p *plan) { do(p.Garden, p.intend("1", 1), p.complete("1", 1)) }, "turn, done 1 attempt 1 by 3"},
		{"two results", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.complete("1", 2), p.retryAt("1", 2, 9))
		}, "turn, done 1 attempt 1 by 3"},
		{"a result that is taken back", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.retryAt("1", 1, 9))
		}, "turn"},
		{"another attempt after a result that is taken back", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.retryAt("1", 1, 9), p.intend("1", 2))
		}, "turn, open 1 attempt 2"},
		{"an intent of a completed effect", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.complete("1", 1), p.intend("1", 2))
		}, "turn, done 1 attempt 1 by 3"},
		{"an attempt that ended", func(p *plan) { do(p.Garden, p.intend("1", 0), p.retryAt("1", 1, 9)) }, "turn, open 1 attempt 1 due 9"},
		{"an attempt that ended twice", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.retryAt("1", 1, 9), p.retryAt("1", 1, 12))
		}, "turn, open 1 attempt 1 due 9"},
		{"the next attempt", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.retryAt("1", 1, 9), p.intend("1", 2))
		}, "turn, open 1 attempt 2"},
		{"the end of an earlier attempt", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.retryAt("1", 1, 9), p.intend("1", 2), p.retryAt("1", 1, 12))
		}, "turn, open 1 attempt 2"},
		{"the result of the next attempt", func(p *plan) {
			do(p.Garden, p.intend("1", 1), p.retryAt("1", 1, 9), p.intend("1", 2), p.complete("1", 2))
		}, "turn, done 1 attempt 2 by 5"},
		{"a retry of no effect", func(p *plan) { do(p.Garden, p.retryAt("1", 1, 9)) }, "turn"},
		{"a completion by key", func(p *plan) {
			do(p.Garden, p.intend("1", 1), event.EffectCompletion{Key: "k1"})
		}, "turn, done 1 attempt 1 by 3"},
		{"another key at the same place", func(p *plan) {
			do(p.Garden, p.intend("1", 1), event.EffectIntent{Key: "mine", TurnID: p.turn, Ordinal: "1", Attempt: 2, Class: "pure"})
		}, "turn, open 1 attempt 2"},

		{"two answers", func(p *plan) {
			do(p.Garden, p.review("i"), decide("i", event.Denied), decide("i", event.Approved))
		}, "turn, answer i denied by 3"},
		{"an answer after a cancelation", func(p *plan) {
			do(p.Garden, p.review("i"), event.ApprovalCancelation{InterruptID: "i"}, decide("i", event.Approved))
		}, "turn, answer i  by 3"},
		{"an answer to nothing", func(p *plan) { do(p.Garden, decide("i", event.Approved), p.review("i")) }, "turn, review i"},
		{"an answer for another effect", func(p *plan) {
			do(p.Garden, event.ApprovalRequest{InterruptID: "i", EffectID: "a"}, event.ApprovalResolution{InterruptID: "i", EffectID: "b", Decision: "approved"})
		}, "turn, review i"},
		{"a review of an ended turn", func(p *plan) {
			do(p.Garden, p.review("i"), p.end("aborted"), decide("i", event.Approved))
		}, ""},
		{"reviews of one cursor", func(p *plan) {
			do(p.Garden, p.review("i"), p.review("j"), p.hibernate("x"), decide("i", event.Approved))
		}, "turn, cursor x inherited false, review j, answer i approved by 5"},
		{"a cursor that is consumed twice", func(p *plan) {
			resume := event.TurnResumption{TurnID: p.turn, CursorID: "x"}
			do(p.Garden, p.hibernate("x"), resume, resume, p.hibernate("y"), resume)
		}, "turn, cursor y inherited false"},
		{"a wait of another turn", func(p *plan) {
			do(p.Garden, event.Wait{WaitID: "w", TurnID: p.turn}, event.TurnStart{Index: 1})
		}, "turn"},
		{"a wait of an ended turn", func(p *plan) { do(p.Garden, event.Wait{WaitID: "w", TurnID: p.turn}, p.end("completed")) }, ""},

		{"a first claim of another epoch", func(p *plan) { do(p.Garden, event.RunClaim{Epoch: 2}) }, "turn"},
		{"claims", func(p *plan) { do(p.Garden, event.RunClaim{Epoch: 1}, event.RunClaim{Epoch: 2}) }, "turn, claim 2"},
		{"claims of an old epoch, of the same, and of a later one", func(p *plan) {
			do(p.Garden, event.RunClaim{Epoch: 1}, event.RunClaim{Epoch: 2}, event.RunClaim{Epoch: 1}, event.RunClaim{Epoch: 2}, event.RunClaim{Epoch: 4})
		}, "turn, claim 2"},
		{"releases of other epochs", func(p *plan) {
			do(p.Garden, event.RunClaim{Epoch: 1}, event.RunClaim{Epoch: 2}, event.RunRelease{Epoch: 1}, event.RunRelease{Epoch: 3})
		}, "turn, claim 2"},
		{"a claim after a release", func(p *plan) {
			do(p.Garden, event.RunClaim{Epoch: 1}, event.RunRelease{Epoch: 1}, event.RunClaim{Epoch: 1})
		}, "turn"},

		{"posted inputs", func(p *plan) { do(p.Garden, posts("a"), posts("b"), posts("a")) }, "turn, input a, input b"},
		{"an input that a turn took", func(p *plan) { do(p.Garden, posts("a"), event.TurnStart{InputID: "a"}) }, "turn"},
		{"an input that a message took", func(p *plan) {
			do(p.Garden, posts("a"), event.Message{Role: event.User, InputID: "a", Parts: []event.Part{event.Text("so")}})
		}, "turn"},
		{"an input on a branch", func(p *plan) { do(p.Garden, posts("a"), event.TurnStart{InputID: "a"}, event.HeadMove{To: 1}) }, "turn"},
		{"an input that was taken before", func(p *plan) { do(p.Garden, event.TurnStart{InputID: "a"}, posts("a"), posts("b")) }, "turn, input a, input b"},
		{"an input without messages", func(p *plan) { do(p.Garden, event.External{InputID: "a", Kind: "tick"}) }, "turn"},
		{"an input without an id", func(p *plan) { do(p.Garden, event.External{Messages: []event.Message{{Role: event.User}}}) }, "turn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				p := &plan{Garden: g, turn: do(g, event.TurnStart{})}
				tt.do(p)
				garden.Same(t, "work", tt.want, work(pendingOf(g, "s")))
			})
		})
	}
}

func posts(id string) event.Payload {
	return event.External{Source: "web", InputID: id, Steer: true, Messages: []event.Message{{Role: event.User, Parts: []event.Part{event.Text(id)}}}}
}

// An unknown word counts as the careful one.
func TestUnknownWordsOfTurns(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		p := &plan{Garden: g, turn: do(g, event.TurnStart{})}
		do(g, p.review("i"))
		lenient := func(payload event.Payload) {
			_, err := g.Log.Append(garden.Bg, "s", eventlog.Any().Lenient(), event.New(payload))
			g.Allow(err)
		}
		lenient(event.EffectIntent{Key: "k", TurnID: p.turn, Ordinal: "1", Class: "twice"})
		lenient(decide("i", "waved through"))
		s := controlOf(g, "s")
		garden.Same(t, "class", event.EffectUnsafeOnce, s.Effects[0].Class)
		garden.Same(t, "decision", event.Denied, s.Answers[0].Decision)
		lenient(event.ApprovalRequest{InterruptID: "j", ExpiresAt: time.Unix(1, 0), Lapse: "ask"})
		lenient(p.end("paused"))
		s = controlOf(g, "s")
		garden.Same(t, "lapse", event.LapseWait, s.Approvals[0].Lapse)
		garden.Same(t, "status", event.TurnStatusInterrupted, s.Ended[0].Status)
	})
}

// A cursor can be consumed when none of its reviews and waits is open.
func TestACursorWaitsForAllItsReviews(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		p := &plan{Garden: g, turn: do(g, event.TurnStart{})}
		resumable := func(want bool) {
			t.Helper()
			pending := pendingOf(g, "s")
			garden.Same(t, "resumable", want, pending.Resumable())
		}
		resumable(false) // it does not hibernate
		do(g, p.review("i"), p.review("j"), event.Wait{WaitID: "w", TurnID: p.turn, CursorID: "x"}, event.ApprovalRequest{InterruptID: "z", CursorID: "y"})
		do(g, p.hibernate("x"))
		for _, answer := range []event.Payload{decide("i", event.Approved), event.ApprovalCancelation{InterruptID: "j"}, event.Wait{WaitID: "w", Resolved: true}} {
			resumable(false)
			do(g, answer)
		}
		resumable(true)
		do(g, event.TurnResumption{TurnID: p.turn, CursorID: "x"})
		resumable(false)
	})
}

// hibernated is a session that hibernates in a turn, with something of everything that
// a fork does not inherit.
func hibernated(g *garden.Garden) {
	p := &plan{Garden: g, turn: do(g, event.TurnStart{SnapshotID: "reserved", Version: "v7"})}
	do(g, event.RunClaim{Epoch: 1}, p.intend("1", 1), p.complete("1", 1), p.intend("2", 1), p.intend("3", 1), p.retryAt("3", 1, 9))
	do(g, p.review("i"), p.review("j"), decide("j", event.Approved), event.Wait{WaitID: "w", TurnID: p.turn, CursorID: "x"}, posts("a"))
	do(g, child(event.ChildStarted), p.hibernate("x"))
}

const ofTheOriginal = "turn, claim 1, cursor x inherited false, review i, answer j approved by 10, wait w, open 2 attempt 1, open 3 attempt 1 due 9, done 1 attempt 1 by 4, input a"
const inherited = "turn, cursor x inherited true, open 2 attempt 1 inherited, open 3 attempt 1 due 9 inherited, done 1 attempt 1 by 4"

// A fork and a copy of a hibernated session have its results, and nothing else that its
// runner could go on with.
func TestForksAndCopiesOfAHibernatedSession(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		hibernated(g)
		garden.Same(t, "the original", ofTheOriginal, work(pendingOf(g, "s")))
		garden.Same(t, "its turn", "reserved v7", pendingOf(g, "s").Turn.SnapshotID+" "+pendingOf(g, "s").Turn.Version)
		head := g.Head("s").Seq
		_, err := fork.At(garden.Bg, g.Log, "s", fork.AtSeq(head), fork.Options{ID: "fork"})
		g.Allow(err)
		_, err = fork.Copy(garden.Bg, g.Log, "s", fork.CopyOptions{ID: "copy"})
		g.Allow(err)
		_, err = fork.Copy(garden.Bg, g.Log, "fork", fork.CopyOptions{ID: "copy of the fork"})
		g.Allow(err)
		for _, name := range []string{"fork", "copy", "copy of the fork"} {
			for range 2 {
				p := pendingOf(g, name)
				garden.Same(t, name, inherited, work(p))
				garden.Same(t, "children of the "+name, 0, len(p.Children))
				garden.Same(t, "the turn of the "+name, " v7", p.Turn.SnapshotID+" "+p.Turn.Version)
				garden.Same(t, "resumable", false, p.Resumable())
				g.Append(name, event.New(decide("i", event.Approved)), event.New(event.RunRelease{Epoch: 1})) // void
			}
			own := &plan{Garden: g, turn: pendingOf(g, name).Turn.ID}
			for _, e := range []event.Payload{event.RunClaim{Epoch: 1}, own.intend("2", 2), own.review("i"), own.hibernate("y"), posts("a")} {
				g.Append(name, event.New(e))
			}
			garden.Same(t, "own work of the "+name, "turn, claim 1, cursor y inherited false, review i, open 3 attempt 1 due 9 inherited, open 2 attempt 2, done 1 attempt 1 by 4, input a", work(pendingOf(g, name)))
		}
		garden.Same(t, "the original is as before", ofTheOriginal, work(pendingOf(g, "s")))
	})
}

// An abort of the original ends no turn of a fork or copy.
func TestForksAndCopiesOfAnAbortedTurn(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, event.TurnStart{}, event.Abort{})
		_, err := fork.At(garden.Bg, g.Log, "s", fork.AtSeq(2), fork.Options{ID: "fork", Force: true})
		g.Allow(err)
		_, err = fork.Copy(garden.Bg, g.Log, "s", fork.CopyOptions{ID: "copy"})
		g.Allow(err)
		for name, want := range map[string]string{"s": "aborted turn", "fork": "turn", "copy": "turn"} {
			garden.Same(t, name, want, work(pendingOf(g, name)))
			garden.Same(t, "aborts of "+name, name == "s", len(controlOf(g, name).Aborts) == 1)
		}
	})
}

// The state stays small after the turns ended, with 10,000 effects, reviews and inputs.
func TestEndedTurnsLeaveNothing(t *testing.T) {
	for _, status := range []event.TurnStatus{event.TurnStatusCompleted, event.TurnStatusFailed, event.TurnStatusAborted, ""} {
		t.Run(string(status), func(t *testing.T) {
			state := &projection.ControlState{}
			var seq int64
			fold := func(p event.Payload) ulid.ULID {
				e := event.New(p)
				seq++
				e.Seq = seq
				if err := projection.Control().Apply(state, &e); err != nil {
					t.Fatal(err)
				}
				return e.ID
			}
			for n := range testsize.Pick(50, 100, 1000) {
				inputs := make([]string, 10)
				for i := range inputs {
					inputs[i] = fmt.Sprintf("input %d.%d", n, i)
					fold(posts(inputs[i]))
				}
				p := &plan{turn: fold(event.TurnStart{InputID: inputs[0]})}
				for i := range inputs {
					fold(event.Message{Role: event.User, InputID: inputs[i]})
					fold(p.intend(fmt.Sprint(i), 1))
					if i%2 == 0 {
						fold(p.complete(fmt.Sprint(i), 1))
					}
					fold(p.review(fmt.Sprint(n, i)))
					if i%3 == 0 {
						fold(decide(fmt.Sprint(n, i), event.Approved))
					}
				}
				fold(event.Abort{})
				if status != "" {
					fold(p.end(status))
				}
			}
			last := &plan{turn: fold(event.TurnStart{})}
			fold(last.end(event.TurnStatusCompleted))
			if n := len(state.Effects) + len(state.Done) + len(state.Answers) + len(state.Approvals) + len(state.Inbox) + len(state.Aborts); n != 0 {
				t.Errorf("%d entries of ended turns", n)
			}
			body, err := json.Marshal(state)
			if err != nil || len(body) > 16<<10 {
				t.Errorf("a state of %d bytes, %v", len(body), err)
			}
		})
	}
}

// The end of a turn drops its entries at once, the end of a failed turn when the next
// turn begins.
func TestTheEndOfATurnDropsItsEntries(t *testing.T) {
	for name, want := range map[string]string{"completed": "0 0", "aborted": "0 0", "interrupted": "0 0", "none named": "0 0", "failed": "4 0", "open": "5 0", "another": "5 0"} {
		garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
			p := &plan{Garden: g, turn: do(g, event.TurnStart{})}
			do(g, p.intend("1", 1), p.complete("1", 1), p.intend("2", 1), p.review("i"), decide("i", event.Approved), p.review("j"), event.Abort{})
			switch name {
			case "none named":
				do(g, event.TurnCompletion{Status: event.TurnStatusCompleted})
			case "another":
				do(g, event.TurnCompletion{TurnID: event.NewID(), Status: event.TurnStatusCompleted})
			case "open":
			default:
				do(g, p.end(event.TurnStatus(name)))
			}
			entries := func() int {
				s := controlOf(g, "s")
				return len(s.Effects) + len(s.Done) + len(s.Approvals) + len(s.Answers) + len(s.Aborts)
			}
			got := fmt.Sprint(entries())
			do(g, event.TurnStart{Index: 1})
			garden.Same(t, name, want, got+" "+fmt.Sprint(entries()))
		})
	}
}

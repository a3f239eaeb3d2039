package projection_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// do appends payloads, each by itself, and gives the id of the first event.
func do(g *garden.Garden, payloads ...event.Payload) (id ulid.ULID) {
	g.T.Helper()
	for _, p := range payloads {
		e := event.New(p)
		if g.Append("s", e); id.IsZero() {
			id = e.ID
		}
	}
	return id
}

// pending lists the pending work of session s.
func pending(g *garden.Garden) (list []string) {
	g.T.Helper()
	p, err := projection.LoadPending(garden.Bg, g.Log, "s")
	g.Allow(err)
	for _, c := range p.Calls {
		list = append(list, fmt.Sprintf("call %s of %s at %d", c.CallID, c.Name, c.Seq))
	}
	for _, w := range p.Waits {
		list = append(list, fmt.Sprintf("wait %s at %d", w.WaitID, w.Seq))
	}
	for _, a := range p.Approvals {
		list = append(list, fmt.Sprintf("approval %s at %d", a.InterruptID, a.Seq))
	}
	for _, x := range p.Effects {
		list = append(list, fmt.Sprintf("effect %s at %d", x.Key, x.Seq))
	}
	for _, c := range p.Children {
		list = append(list, fmt.Sprintf("child %s %s at %d", c.ChildID, c.State, c.Seq))
	}
	if p.Turn != nil {
		list = append(list, fmt.Sprintf("turn %d at %d", p.Turn.Index, p.Turn.Seq))
	}
	if p.Cursor != nil {
		list = append(list, fmt.Sprintf("cursor %s at %d", p.Cursor.Cursor.ID, p.Cursor.Seq))
	}
	if empty := len(list) == 0; p.IsZero() != empty {
		g.T.Fatalf("IsZero is %v of %v", p.IsZero(), list)
	}
	if p.Claim != nil {
		list = append(list, fmt.Sprintf("claim %d at %d", p.Claim.Epoch, p.Claim.Seq))
	}
	return list
}

func child(state event.ChildState) event.Child {
	return event.Child{State: state, ChildID: "c"}
}

func TestPendingWork(t *testing.T) {
	for _, tt := range []struct {
		name        string
		open, close event.Payload // close in the state that open leaves
		want        string
	}{
		{"call", says(calls("a")), gives("a", "A"), "call a of tool at 2"},
		{"wait", event.Wait{WaitID: "w"}, event.Wait{Resolved: true, WaitID: "w"}, "wait w at 2"},
		{"approval", event.ApprovalRequest{InterruptID: "i"}, event.ApprovalResolution{InterruptID: "i", Decision: event.Denied}, "approval i at 2"},
		{"canceled approval", event.ApprovalRequest{InterruptID: "i"}, event.ApprovalCancelation{InterruptID: "i"}, "approval i at 2"},
		{"effect", event.EffectIntent{Key: "k", Class: event.EffectPure}, event.EffectCompletion{Key: "k"}, "effect k at 2"},
		{"failed effect", event.EffectIntent{Key: "k", Class: event.EffectPure}, event.EffectCompletion{Key: "k", Error: &event.EffectError{Code: "no"}}, "effect k at 2"},
		{"child", child(event.ChildRequested), child(event.ChildCompleted), "child c requested at 2"},
		{"failed child", child(event.ChildBlocked), child(event.ChildFailed), "child c blocked at 2"},
		{"canceled child", child(event.ChildStarted), child(event.ChildCanceled), "child c started at 2"},
		{"claim", event.RunClaim{Epoch: 1}, event.RunRelease{Epoch: 1}, "claim 1 at 2"},
		{"turn", event.TurnStart{Index: 5}, event.TurnCompletion{Status: event.TurnStatusAborted}, "turn 5 at 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
				do(g, asks("hello"))
				garden.Same(t, "before", 0, len(pending(g)))
				do(g, tt.open)
				garden.Same(t, "open", []string{tt.want}, pending(g))
				do(g, asks("a word between")) // 3
				garden.Same(t, "still open", []string{tt.want}, pending(g))
				do(g, tt.close) // 4
				garden.Same(t, "closed", 0, len(pending(g)))
				do(g, event.HeadMove{To: 1})
				garden.Same(t, "rewound", 0, len(pending(g)))
				path := tt.name == "call" || tt.name == "wait" || tt.name == "turn"
				if do(g, event.HeadMove{To: 3}); path { // to where it was open
					garden.Same(t, "open again", []string{tt.want}, pending(g))
				} else {
					garden.Same(t, "a fact of the session", 0, len(pending(g)))
				}
				do(g, event.HeadMove{To: 4})
				garden.Same(t, "recovered", 0, len(pending(g)))
			})
		})
	}
}

func TestATurnThatHibernates(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		turn := do(g, event.TurnStart{})
		hibernate := func(id string) event.TurnHibernation {
			return event.TurnHibernation{TurnID: turn, Cursor: event.Cursor{ID: id, Kind: "review"}, SnapshotID: "snap-" + id}
		}
		do(g, hibernate("x")) // 2
		garden.Same(t, "laid down", []string{"turn 0 at 1", "cursor x at 2"}, pending(g))
		p, err := projection.LoadPending(garden.Bg, g.Log, "s")
		g.Allow(err)
		garden.Same(t, "its snapshot", "snap-x", p.Cursor.SnapshotID)
		do(g, event.TurnResumption{TurnID: turn, CursorID: "x"}) // 3
		garden.Same(t, "resumed", []string{"turn 0 at 1"}, pending(g))
		do(g, hibernate("y")) // 4
		garden.Same(t, "and again", []string{"turn 0 at 1", "cursor y at 4"}, pending(g))
		do(g, event.HeadMove{To: 2}) // 5: its cursor was consumed
		garden.Same(t, "rewound", []string{"turn 0 at 1"}, pending(g))
		do(g, event.HeadMove{To: 4}, event.TurnCompletion{TurnID: turn, Status: event.TurnStatusCompleted})
		garden.Same(t, "ended", 0, len(pending(g)))
	})
}

// The log says whether a turn long before others has ended.
func TestATurnBeforeManyOthers(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		first := do(g, event.TurnStart{Index: 7})
		cursor := event.TurnHibernation{TurnID: first, Cursor: event.Cursor{ID: "x", Kind: "wait"}}
		do(g, cursor, event.TurnResumption{TurnID: first, CursorID: "x"})             // 2, 3
		do(g, event.TurnCompletion{TurnID: first, Status: event.TurnStatusCompleted}) // 4
		for range 40 {
			id := do(g, event.TurnStart{})
			do(g, event.TurnResumption{TurnID: id, CursorID: "y"}, event.TurnCompletion{TurnID: id, Status: event.TurnStatusCompleted})
		}
		do(g, event.HeadMove{To: 3})
		garden.Same(t, "before its end", []string{"turn 7 at 1"}, pending(g))
		do(g, event.HeadMove{To: 4})
		garden.Same(t, "at its end", 0, len(pending(g)))
	})
}

// A turn_completed without a turn id, for example from an import, ends the turn
// before it.
func TestATurnCompletionWithoutATurn(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, event.TurnStart{Index: 0}, event.TurnCompletion{Status: event.TurnStatusCompleted})
		garden.Same(t, "ended", 0, len(pending(g)))
		do(g, event.TurnStart{Index: 1})
		garden.Same(t, "the next one", []string{"turn 1 at 3"}, pending(g))
	})
}

// A pending call has its arguments and its effect, and the list is a copy.
func TestPendingCallsAreComplete(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		arguments := jsontext.Value(`{"n":1}`)
		do(g, event.TurnStart{Index: 4})
		do(g, says(event.ToolCall("a", "tool", arguments), event.ToolCall("b", "tool", arguments), event.ToolCall("c", "tool", arguments), event.ToolCall("d", "other", nil)))
		nonce := "00112233445566778899aabbccddeeff"
		digest, err := event.ArgumentsDigest(nonce, arguments)
		g.Allow(err)
		do(g, event.EffectIntent{Key: "k1", Name: "tool", Class: event.EffectUnsafeOnce, Nonce: nonce, ArgumentsDigest: digest})
		do(g, event.EffectIntent{Key: "b", Name: "tool", Class: event.EffectPure})
		turn := event.NewID()
		do(g, event.EffectIntent{Key: "d", TurnID: turn, Name: "other", Class: event.EffectPure})
		do(g, event.EffectCompletion{Key: "d", TurnID: turn, Result: jsontext.Value(`1`)}) // 6
		live, err := projection.Resume(garden.Bg, g.Log, "s", projection.Session())
		g.Allow(err)
		p, err := projection.PendingOf(garden.Bg, g.Log, live)
		g.Allow(err)
		var got []string
		for _, c := range p.Calls { // appends while it ranges
			text := fmt.Sprint(c.CallID, " ", c.Name, string(c.Arguments))
			if c.Intended != nil {
				text += " intended " + c.Intended.Key + " " + string(c.Intended.Class)
			}
			if c.Done != nil {
				text += fmt.Sprint(" done ", c.Done.Key, " ", c.Done.Completed)
			}
			got = append(got, text)
			if _, err := live.Append(garden.Bg, event.New(gives(c.CallID, "found"))); err != nil {
				t.Fatal(err)
			}
		}
		garden.Same(t, "calls", []string{`a tool{"n":1} intended k1 unsafe_once`, `b tool{"n":1} intended b pure`, `c tool{"n":1}`, "d other{} done d 6"}, got)
		garden.Same(t, "the next turn", 5, p.NextTurn)
		after, err := projection.PendingOf(garden.Bg, g.Log, live)
		g.Allow(err)
		garden.Same(t, "answered", 0, len(after.Calls))
		garden.Same(t, "a copy", 4, len(p.Calls))
	})
}

func TestPendingOfAnotherSet(t *testing.T) {
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		do(g, says(calls("a")))
		for _, set := range []projection.Set{projection.Of("", projection.Calls()), projection.Of("", projection.Control())} {
			l, err := projection.LoadSet(garden.Bg, g.Log, "s", set)
			g.Allow(err)
			if _, err := projection.PendingOf(garden.Bg, g.Log, l); !errors.Is(err, projection.ErrInvalidSet) {
				t.Errorf("%v", err)
			}
		}
		live, err := projection.Resume(garden.Bg, g.Log, "s", projection.Session())
		g.Allow(err)
		p, err := projection.PendingOf(garden.Bg, g.Log, live)
		g.Allow(err)
		garden.Same(t, "calls", 1, len(p.Calls))
		at, err := projection.LoadPending(garden.Bg, g.Log, "s", projection.Options{At: 1})
		g.Allow(err)
		garden.Same(t, "calls", p.Calls, at.Calls)
		if _, err := projection.LoadPending(garden.Bg, g.Log, "none"); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("a missing session: %v", err)
		}
	})
}

func TestFindTool(t *testing.T) {
	start := func(id, key string) event.ToolStart {
		return event.ToolStart{CallID: id, Name: "look", IdempotencyKey: key, Arguments: []byte(`{"of":"` + id + `"}`)}
	}
	end := func(id, key, text string) event.ToolCompletion {
		return event.ToolCompletion{CallID: id, Name: "look", IdempotencyKey: key, IsError: text == "", Error: map[bool]string{true: "gone"}[text == ""],
			Content: []event.Part{event.Text(text)}, DurationMS: 12}
	}
	garden.OnGarden(t, func(t *testing.T, g *garden.Garden) {
		find := func(key string) (projection.ToolRun, bool) {
			view, err := projection.Load(garden.Bg, g.Log, "s", projection.Tools())
			g.Allow(err)
			return view.State.Find(key)
		}
		do(g, start("a", "k1"), end("a", "k1", "first"))              // 1, 2
		do(g, start("b", "k1"), end("b", "k1", "second"))             // 3, 4: tried again
		do(g, start("k1", "k2"))                                      // 5: its call id is another's key
		do(g, end("c", "", "never started"), start("d", "k3"))        // 6, 7
		do(g, end("d", "k3", ""), start("e", "k4"), start("f", "k5")) // 8, 9, 10
		_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{9}, erase.RedactOptions{Reason: "test"})
		g.Allow(err)
		for key, want := range map[string]string{
			"k1": "b k1 3-4",
			"a":  "a k1 1-2",
			"k2": "k1 k2 5-0",
			"c":  "c  0-6",
			"k3": "d k3 7-8",
			"k4": "e k4 9-0",
			"f":  "f k5 10-0",
		} {
			x, ok := find(key)
			garden.Same(t, key, want, fmt.Sprintf("%s %s %d-%d", x.CallID, x.IdempotencyKey, x.Started, x.Completed))
			if !ok || x.IsError != (key == "k3") {
				t.Errorf("%s: %+v, %v", key, x, ok)
			}
			if x.Completed > 0 && x.DurationMS != 12 {
				t.Errorf("%s: %+v", key, x)
			}
		}
		for _, key := range []string{"", "x", "look"} {
			if x, ok := find(key); ok {
				t.Errorf("%q: %+v", key, x)
			}
		}
		do(g, event.HeadMove{To: 2})
		x, _ := find("k1")
		garden.Same(t, "on the path", "a", x.CallID)
		if x, ok := find("k3"); ok {
			t.Errorf("rewound call: %+v", x)
		}
	})
}

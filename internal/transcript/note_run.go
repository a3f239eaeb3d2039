package transcript

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// turnCompletion describes the end of a turn. Readers need no note of a completed turn.
func turnCompletion(t *event.TurnCompletion) Note {
	n := Note{Name: "turn", Words: []string{string(t.Status)}, Text: t.Error}
	if t.StopReason != string(t.Status) {
		n.Words = append(n.Words, t.StopReason)
	}
	if t.Status == event.TurnStatusCompleted {
		n.Name = ""
	}
	return n
}

func hibernation(t *event.TurnHibernation) Note {
	return Note{Name: "turn hibernated:", Words: []string{strings.TrimSpace(t.Cursor.Kind + " " + t.Cursor.Operation),
		prefixed("snapshot ", t.SnapshotID), t.Reason}}
}

func resumption(t *event.TurnResumption) Note {
	return Note{Words: []string{prefixed("from snapshot ", t.SnapshotID)}}
}

func external(x *event.External) Note {
	words := []string{strings.TrimSpace(x.Source + " " + x.Kind)}
	for i := range x.Messages {
		words = append(words, Gist(x.Messages[i].Text()))
	}
	if x.Steer {
		words = append(words, "for the running turn")
	}
	return Note{Name: "input from outside:", Words: append(words, prefixed("input ", x.InputID)), Text: string(x.Value)}
}

func child(c *event.Child) Note {
	name := prefixed("session ", c.ChildSessionID)
	if name == "" {
		name = c.ChildID
	}
	words := []string{strings.TrimSpace(c.Agent + " " + string(c.Mode)), name, prefixed("waits for review ", c.InterruptID), c.Status, c.Reason}
	if n := len(c.ArtifactIDs); n > 0 {
		words = append(words, Count(int64(n), "artifact"))
	}
	var texts []string
	for _, text := range []string{c.Error, c.Message, c.Task, c.Summary} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	return Note{Name: "child run " + string(c.State) + ":", Words: words, Text: strings.Join(texts, "\n\n")}
}

func intent(i *event.EffectIntent) Note {
	words := []string{strings.TrimSpace(i.Kind + " " + i.Name + inBrackets(i.Arguments))}
	if i.Attempt > 1 {
		words = append(words, fmt.Sprintf("attempt %d", i.Attempt))
	}
	return Note{Words: append(words, string(i.Class))}
}

func completion(c *event.EffectCompletion) Note {
	var words []string
	switch {
	case !c.RetryAt.IsZero():
		words = []string{fmt.Sprintf("attempt %d ended without a result", c.Attempt), "retry at " + c.RetryAt.UTC().Format("15:04:05")}
	case c.Error == nil && len(c.Result) > 0:
		words = []string{"→ " + string(c.Result)}
	}
	if c.Error != nil {
		words = append(words, "error: "+c.Error.Message)
	}
	if c.By != "" {
		words = append(words, Decided("recorded", c.By, c.Reason, nil))
	}
	return Note{Words: words}
}

func approvalRequest(a *event.ApprovalRequest) Note {
	return Note{Name: "approval asked:", Text: a.Prompt,
		Words: []string{a.Name + inBrackets(a.Arguments), a.Operation, "review " + a.InterruptID, prefixed("until ", Clock(a.ExpiresAt))}}
}

func approvalResolution(a *event.ApprovalResolution) Note {
	decision := string(a.Decision)
	if a.Decision == event.Answered {
		decision += " with " + Gist(string(a.Answer))
	}
	return Note{Name: "answer:", Words: []string{Decided(decision, a.By, a.Reason, a.Arguments), "review " + a.InterruptID}}
}

func approvalCancelation(a *event.ApprovalCancelation) Note {
	return Note{Name: "approval canceled:", Words: []string{a.Reason, "review " + a.InterruptID}}
}

func wait(w *event.Wait) Note {
	return Note{Words: []string{w.Reason, string(w.Outcome), prefixed("by ", w.By), prefixed("→ ", string(w.Value)),
		prefixed("until ", Clock(w.Until)), "wait " + w.WaitID}}
}

func claim(c *event.RunClaim) Note {
	return Note{Words: []string{fmt.Sprintf("run %d", c.Epoch), prefixed("by ", c.Runner)}}
}

func release(r *event.RunRelease) Note {
	return Note{Words: []string{fmt.Sprintf("run %d", r.Epoch)}}
}

func abort(a *event.Abort) Note {
	return Note{Words: []string{prefixed("by ", a.By), a.Reason}}
}

// Decided describes a decision: who took it, with which arguments, and why.
func Decided(decision, by, reason string, arguments jsontext.Value) string {
	text := decision + prefixed(" by ", by)
	if len(arguments) > 0 {
		text += " with other arguments" + inBrackets(arguments)
	}
	return text + prefixed(": ", reason)
}

// inBrackets returns arguments on one line, shortened; empty if there are none.
func inBrackets(arguments jsontext.Value) string {
	if len(arguments) == 0 || string(arguments) == "null" {
		return ""
	}
	all := Arguments(arguments)
	if line := OneLine(all); line != "" || len(all) == 0 {
		return " (" + line + ")"
	}
	return " (" + Gist(string(arguments)) + ")"
}

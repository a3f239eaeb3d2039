package main

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// describeRun describes an event of a run in plain words; false for any other event.
func describeRun(e *event.Event) (string, bool) {
	if e.Redacted() {
		return "", false
	}
	if _, ok := e.Type.ChildState(); ok {
		return describeAs(e, describeChild)
	}
	switch e.Type.Name() {
	case event.EffectIntended:
		return describeAs(e, describeIntent)
	case event.EffectCompleted:
		return describeAs(e, describeCompletion)
	case event.ApprovalRequested:
		return describeAs(e, describeRequest)
	case event.ApprovalResolved:
		return describeAs(e, describeDecision)
	case event.ApprovalCanceled:
		return describeAs(e, func(p event.ApprovalCancelation) []string { return []string{p.Reason, "review " + p.InterruptID} })
	case event.WaitStarted, event.WaitResolved:
		return describeAs(e, describeWait)
	case event.TurnHibernated:
		return describeAs(e, func(p event.TurnHibernation) []string {
			return []string{strings.TrimSpace(p.Cursor.Kind + " " + p.Cursor.Operation), prefixed("snapshot ", p.SnapshotID), p.Reason}
		})
	case event.TurnResumed:
		return describeAs(e, func(p event.TurnResumption) []string { return []string{prefixed("from snapshot ", p.SnapshotID)} })
	case event.RunClaimed:
		return describeAs(e, func(p event.RunClaim) []string {
			return []string{fmt.Sprintf("run %d", p.Epoch), prefixed("by ", p.Runner)}
		})
	case event.RunReleased:
		return describeAs(e, func(p event.RunRelease) []string { return []string{fmt.Sprintf("run %d", p.Epoch)} })
	case event.AbortRequested:
		return describeAs(e, func(p event.Abort) []string { return []string{prefixed("by ", p.By), p.Reason} })
	case event.ExternalInput:
		if p, _, err := event.Decode[event.External](e); err != nil || p.InputID == "" {
			return "", false // for another program
		}
		return describeAs(e, describeInput)
	}
	return "", false
}

// describeAs decodes the payload of an event and joins the words about it.
func describeAs[T event.Payload](e *event.Event, words func(T) []string) (string, bool) {
	p, ok, err := event.Decode[T](e)
	if !ok || err != nil {
		return "", false
	}
	var all []string
	for _, word := range words(p) {
		if word != "" {
			all = append(all, brief(word, 120))
		}
	}
	return strings.Join(all, ", "), true
}

// prefixed is a prefix and a text; empty if the text is empty.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// inBrackets are arguments on one line, shortened.
func inBrackets(arguments jsontext.Value) string {
	if len(arguments) == 0 || string(arguments) == "null" {
		return ""
	}
	if line := oneLine(transcript.Arguments(arguments)); line != "" {
		return line
	}
	return " (" + brief(string(arguments), 80) + ")"
}

func describeChild(p event.Child) []string {
	session := prefixed("session ", p.ChildSessionID)
	if session == "" {
		session = p.ChildID
	}
	words := []string{strings.TrimSpace(p.Agent + " " + string(p.Mode)), session, prefixed("waits for review ", p.InterruptID), p.Status, p.Reason,
		p.Error, p.Message, p.Task, p.Summary}
	if n := len(p.ArtifactIDs); n > 0 {
		words = append(words, fmt.Sprintf("%d artifacts", n))
	}
	return words
}

func describeIntent(p event.EffectIntent) []string {
	words := []string{strings.TrimSpace(p.Kind + " " + p.Name + inBrackets(p.Arguments))}
	if p.Attempt > 1 {
		words = append(words, fmt.Sprintf("attempt %d", p.Attempt))
	}
	return append(words, string(p.Class))
}

func describeCompletion(p event.EffectCompletion) (words []string) {
	switch {
	case !p.RetryAt.IsZero():
		words = []string{fmt.Sprintf("attempt %d ended without a result", p.Attempt), "retry at " + p.RetryAt.UTC().Format("15:04:05")}
	case p.Error == nil && len(p.Result) > 0:
		words = []string{"→ " + string(p.Result)}
	}
	if p.Error != nil {
		words = append(words, "error: "+p.Error.Message)
	}
	if p.By != "" {
		words = append(words, "recorded"+decided("", p.By, p.Reason, nil))
	}
	return words
}

func describeRequest(p event.ApprovalRequest) []string {
	words := []string{p.Name + inBrackets(p.Arguments), p.Prompt, "review " + p.InterruptID}
	if !p.ExpiresAt.IsZero() {
		words = append(words, "until "+p.ExpiresAt.UTC().Format("2006-01-02 15:04:05"))
	}
	return words
}

func describeDecision(p event.ApprovalResolution) []string {
	decision := string(p.Decision)
	if p.Decision == event.Answered {
		decision += " with " + brief(string(p.Answer), 80)
	}
	return []string{decided(decision, p.By, p.Reason, p.Arguments), "review " + p.InterruptID}
}

func describeWait(p event.Wait) []string {
	words := []string{p.Reason, string(p.Outcome), prefixed("by ", p.By)}
	if len(p.Value) > 0 {
		words = append(words, "→ "+string(p.Value))
	}
	if !p.Until.IsZero() {
		words = append(words, "until "+p.Until.UTC().Format("2006-01-02 15:04:05"))
	}
	return append(words, "wait "+p.WaitID)
}

func describeInput(p event.External) []string {
	words := []string{strings.TrimSpace(p.Source + " " + p.Kind)}
	for i := range p.Messages {
		words = append(words, p.Messages[i].Text())
	}
	if p.Steer {
		words = append(words, "for the running turn")
	}
	return append(words, prefixed("input ", p.InputID))
}

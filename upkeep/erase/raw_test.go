package erase_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// rawLog is a log in which every day has a call with its bodies.
type rawLog struct {
	*testing.T
	*eventlog.Log
	now time.Time
}

func newRawLog(t *testing.T, store eventlog.Store) *rawLog {
	x := &rawLog{T: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	x.Log = eventlog.Open(store, eventlog.Options{Now: func() time.Time { return x.now }, SpillOver: 400})
	t.Cleanup(func() { x.must(x.Close()) })
	return x
}

func (x *rawLog) must(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

func (x *rawLog) append(session string, events ...event.Event) {
	x.Helper()
	_, err := x.Append(x.Context(), session, eventlog.Any(), events...)
	x.must(err)
}

// body stores a body.
func (x *rawLog) body(text string) event.BlobRef {
	x.Helper()
	ref, err := x.PutBlob(x.Context(), strings.NewReader(text))
	x.must(err)
	return ref
}

// day appends a call: its step, the answer, the bodies, and a snapshot mark. It has five
// events. The data of the first body is spilled.
func (x *rawLog) day(session, answer string) {
	x.Helper()
	x.append(session, event.New(event.StepStart{Step: 1, Model: "m", RequestDigest: event.DigestOf([]byte(answer))}))
	x.append(session, event.AssistantMessage(answer),
		event.New(event.Op{Kind: "raw_request", Body: x.body("request of " + answer), Text: strings.Repeat("long ", 100)}),
		event.New(event.Op{Kind: "raw_response", Body: x.body("response " + answer)}),
		event.New(event.StepCompletion{Step: 1, Model: "m", Usage: event.Usage{OutputTokens: 5}}))
	x.now = x.now.AddDate(0, 0, 1)
}

// erased formats the erased events.
func erased(r erase.Redaction) (list []string) {
	for _, e := range r.Erased {
		list = append(list, fmt.Sprintf("%s %d %s", e.Session, e.Seq, e.Type))
	}
	return list
}

func (x *rawLog) same(what string, want []string, got []string) {
	x.Helper()
	if strings.Join(want, ", ") != strings.Join(got, ", ") {
		x.Errorf("%s:\nwant %q\ngot  %q", what, want, got)
	}
}

// sound checks that the log is undamaged.
func (x *rawLog) sound(sessions ...string) {
	x.Helper()
	for _, session := range sessions {
		report, err := verify.Session(x.Context(), x.Log, session)
		x.must(err)
		if report.Damaged() > 0 || len(report.Defects) > 0 {
			x.Errorf("session %s: %v", session, report.Defects)
		}
	}
}

func (x *rawLog) has(ref event.BlobRef) bool {
	x.Helper()
	body, err := x.OpenBlob(x.Context(), ref.Blob)
	if errors.Is(err, eventlog.ErrBlobNotFound) {
		return false
	}
	x.must(err)
	x.must(body.Close())
	return true
}

func onRawLogs(t *testing.T, test func(t *testing.T, x *rawLog)) {
	for name, open := range map[string]func(dir string) eventlog.Store{
		"memory": func(string) eventlog.Store { return memory.New() },
		"jsonl":  func(dir string) eventlog.Store { return jsonl.New(dir) },
		"sqlite": func(dir string) eventlog.Store { return sqlite.New(dir + "/s.db") },
	} {
		t.Run(name, func(t *testing.T) { test(t, newRawLog(t, open(t.TempDir()))) })
	}
}

// Bodies are erased by age; steps, usage, answers and snapshots stay.
func TestRawByAge(t *testing.T) {
	onRawLogs(t, func(t *testing.T, x *rawLog) {
		for _, answer := range []string{"one", "two", "three"} {
			x.day("a", answer)
			x.append("a", event.New(event.Snapshot{Projection: "shop:none", Version: 1, StateDigest: event.DigestOf(nil), Seq: 1}))
		}
		x.day("b", "one")
		before := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
		want := []string{"a 3 op_logged", "a 4 op_logged", "a 9 op_logged", "a 10 op_logged"}
		plan, err := erase.Raw(t.Context(), x.Log, before, nil, erase.RedactOptions{DryRun: true})
		x.must(err)
		x.same("planned", want, erased(plan))
		done, err := erase.Raw(t.Context(), x.Log, before, nil, erase.RedactOptions{Reason: "older"})
		x.must(err)
		x.same("erased", want, erased(done))
		// "b" needs the bodies of the answer "one".
		for text, stays := range map[string]bool{"one": true, "two": false, "three": true} {
			for _, body := range []string{"request of ", "response "} {
				ref := event.BlobRef{Blob: event.DigestOf([]byte(body + text))}
				if x.has(ref) != stays {
					t.Errorf("the body %q: stays %v", body+text, !stays)
				}
			}
		}
		again, err := erase.Raw(t.Context(), x.Log, before, nil)
		x.must(err)
		x.same("erased again", nil, erased(again))
		x.sound("a", "b")
		rest, err := erase.Raw(t.Context(), x.Log, time.Time{}, []string{"a"})
		x.must(err)
		x.same("all of a", []string{"a 15 op_logged", "a 16 op_logged"}, erased(rest))
		x.sound("a", "b")
	})
}

// A request repeats the history, so the later bodies go along with an erased message: also
// in forks. Nothing goes along with a body.
func TestRawAlong(t *testing.T) {
	onRawLogs(t, func(t *testing.T, x *rawLog) {
		x.day("a", "harmless")
		x.append("a", event.UserMessage("the password is swordfish"))
		x.day("a", "noted")
		_, err := fork.At(t.Context(), x.Log, "a", fork.Head(), fork.Options{ID: "f"})
		x.must(err)
		x.day("f", "swordfish, then")
		x.append("a", event.New(event.Child{State: event.ChildCompleted, ChildID: "c", ChildSessionID: "child"}))
		x.day("child", "elsewhere")

		done, err := erase.Redact(t.Context(), x.Log, "a", []int64{9}, erase.RedactOptions{DryRun: true})
		x.must(err)
		x.same("with a body", []string{"a 9 op_logged"}, erased(done))
		done, err = erase.Redact(t.Context(), x.Log, "a", []int64{6})
		x.must(err)
		x.same("with a message", []string{"a 6 message_added", "a 7 step_started", "a 9 op_logged", "a 10 op_logged",
			"f 13 step_started", "f 15 op_logged", "f 16 op_logged"}, erased(done))
		var listed []string
		for _, e := range done.Untouched {
			listed = append(listed, fmt.Sprintf("%s %d", e.Session, e.Seq))
		}
		x.same("not touched", []string{"child 3", "child 4"}, listed)
		x.sound("a", "f", "child")
	})
}

package erase_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

const password = "hunter2-the-password"

// grep lists the files below a folder that hold text. They are read by another
// process, as closing a database's file here would drop SQLite's locks on it.
func grep(t *testing.T, dir, text string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "grep", "-rlaF", "-e", text, dir).Output()
	var status *exec.ExitError
	if err != nil && (!errors.As(err, &status) || status.ExitCode() != 1) {
		t.Fatal(err)
	}
	return string(out)
}

func snapshotEvent(seq int64, state string) event.Event {
	return event.Event{Type: event.ProjectionSnapshotted, Data: fmt.Appendf(nil, `{"projection":"p","version":1,`+
		`"snapshot_id":"0190a5a4-7d4c-7000-8000-000000000001","state_digest":"%s","index":0,"turn_index":0,"trigger":"manual","seq":%d,%s}`,
		event.DigestOf([]byte("{}")), seq, state)}
}

// confide writes the password to every possible place: a line, spilled data, an image,
// metadata, and snapshots of the session and of a fork (inline, spilled and as blobs).
// A person sees seqs 2 to 4 of "parent".
func confide(t *testing.T, l *eventlog.Log) {
	t.Helper()
	ctx := t.Context()
	ref, err := l.PutBlob(ctx, strings.NewReader("an image of "+password))
	if err != nil {
		t.Fatal(err)
	}
	body, err := l.PutBlob(ctx, strings.NewReader(`{"said":"`+password+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	image := event.Event{Type: event.MessageAdded, Data: fmt.Appendf(nil,
		`{"role":"user","parts":[{"type":"image","media_type":"image/png","blob":{"blob":"%s","bytes":%d}}]}`, ref.Blob, ref.Bytes)}
	long := event.UserMessage(password + strings.Repeat(" and so on", 200))
	inline := event.UserMessage("it is " + password)
	inline.Metadata = jsontext.Value(`{"k":"` + password + `"}`)
	head, err := l.Append(ctx, "parent", eventlog.New(), event.UserMessage("hello"), inline, long, image, event.UserMessage("thanks"))
	if err == nil {
		_, err = l.Append(ctx, "parent", eventlog.Any(), snapshotEvent(5, `"state":{"said":"`+password+`"}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testkit.Fork(ctx, l, "child", "parent", head.Seq); err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{
		`"state":{"said":"` + password + strings.Repeat(" and so on", 200) + `"}`,
		fmt.Sprintf(`"body_digest":"%s","body":{"blob":"%s","bytes":%d}`, body.Blob, body.Blob, body.Bytes),
	} {
		if _, err := l.Append(ctx, "child", eventlog.Any(), snapshotEvent(7+int64(i), state)); err != nil {
			t.Fatal(err)
		}
	}
}

// After a redaction the content is in no file of the store, also while others
// have it open, and those others see the redacted events.
func TestRedactedBytesAreNowhere(t *testing.T) {
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			l := testkit.Open(t, open(dir), eventlog.Options{SpillOver: 1000})
			confide(t, l)
			other := testkit.Open(t, open(dir))
			if _, err := other.Append(ctx, "parent", eventlog.Any(), event.UserMessage("I am here too")); err != nil {
				t.Fatal(err)
			}
			for e, err := range other.Read(ctx, "parent", eventlog.Last(1)) {
				if err != nil {
					t.Fatal(e, err)
				}
			}
			if name == "jsonl" {
				testkit.Tear(t, filepath.Join(dir, "parent.jsonl"), `{"said":"`+password)
				if _, err := other.Append(ctx, "parent", eventlog.Any(), event.UserMessage("the tail is saved")); err != nil {
					t.Fatal(err)
				}
				testkit.Tear(t, filepath.Join(dir, "child.jsonl"), `{"said":"`+password)
			}
			if grep(t, dir, password) == "" {
				t.Fatal("the password is not there to begin with")
			}
			plan, err := erase.Redact(ctx, l, "parent", []int64{2, 3, 4}, erase.RedactOptions{DryRun: true})
			if err != nil || len(plan.Erased) != 6 || len(plan.Blobs) != 4 || len(plan.Untouched)+len(plan.Already)+len(plan.Unread) > 0 {
				t.Errorf("the plan: %+v, %v", plan, err)
			}
			if tails := len(plan.TornTails); tails > 0 != (name == "jsonl") {
				t.Errorf("%d torn tails", tails)
			}
			if _, err := erase.Redact(ctx, l, "parent", []int64{2, 3, 4}, erase.RedactOptions{Reason: "a password"}); err != nil {
				t.Fatal(err)
			}
			if found := grep(t, dir, password); found != "" {
				t.Errorf("the password is still in\n%s", found)
			}
			for _, reader := range []*eventlog.Log{l, other} {
				for _, session := range []string{"parent", "child"} {
					report, err := verify.Session(ctx, reader, session)
					if err != nil || len(report.Defects) > 0 {
						t.Errorf("%q: %v, %v", session, report.Defects, err)
					}
					for e, err := range reader.Read(ctx, session, eventlog.All()) {
						if err != nil || bytes.Contains(e.Line(), []byte(password)) || e.Seq >= 2 && e.Seq <= 4 && !e.Redacted() {
							t.Errorf("%q holds %s, %v", session, e.Line(), err)
						}
					}
				}
			}
			if garbage, err := erase.Collect(ctx, l, erase.CollectOptions{Grace: -1, DryRun: true}); err != nil || len(garbage.Blobs) > 0 {
				t.Errorf("garbage is left: %+v, %v", garbage, err)
			}
		})
	}
}

// killed is a store that stops working when blobs are to be removed.
var _ eventlog.Blobs = (*killed)(nil)

type killed struct {
	eventlog.Store
	eventlog.Blobs
	dead bool
}

func (k *killed) Unwrap() eventlog.Store { return k.Store }

func (k *killed) RemoveBlobs(ctx context.Context, digests []event.Digest) error {
	if k.dead {
		return errStopped
	}
	return k.Blobs.RemoveBlobs(ctx, digests)
}

// defectRules lists the rules of the defects that verify finds outside sessions.
func defectRules(t *testing.T, l *eventlog.Log) (rules []string) {
	t.Helper()
	for d, err := range verify.Store(t.Context(), l) {
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, d.Rule)
	}
	return rules
}

// A redaction that was killed before it removed the blobs is finished by asking
// for it again, or by collecting garbage.
func TestRedactionKilledBeforeBlobsWereRemoved(t *testing.T) {
	ctx := t.Context()
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			for finish, f := range map[string]func(l *eventlog.Log) error{
				"again": func(l *eventlog.Log) error {
					done, err := erase.Redact(ctx, l, "parent", []int64{2, 3, 4}, erase.RedactOptions{Reason: ""})
					if len(done.Already) != 3 || len(done.Erased) > 0 {
						t.Errorf("the second time: %+v", done)
					}
					return err
				},
				"gc": func(l *eventlog.Log) error {
					_, err := erase.Collect(ctx, l)
					return err
				},
				"finish": func(l *eventlog.Log) error { return erase.Finish(ctx, l) },
			} {
				dir := t.TempDir()
				inner := open(dir)
				blobs, _ := eventlog.As[eventlog.Blobs](inner)
				s := &killed{Store: inner, Blobs: blobs, dead: true}
				l := testkit.Open(t, s, eventlog.Options{SpillOver: 1000})
				confide(t, l)
				if _, err := erase.Redact(ctx, l, "parent", []int64{2, 3, 4}, erase.RedactOptions{Reason: ""}); !errors.Is(err, errStopped) {
					t.Fatal(err)
				}
				before, err := l.Head(ctx, "parent")
				if err != nil || grep(t, dir, password) == "" {
					t.Fatalf("nothing is left to be done (%v)", err)
				}
				s.dead = false
				if rules := defectRules(t, l); !slices.Contains(rules, "erasing") {
					t.Errorf("verify does not report the interrupted erasure: %q", rules)
				}
				if err := f(l); err != nil {
					t.Errorf("%s: %v", finish, err)
				}
				if found := grep(t, dir, password); found != "" {
					t.Errorf("%s: the password is still in\n%s", finish, found)
				}
				if rules := defectRules(t, l); len(rules) > 0 {
					t.Errorf("%s: verify reports %q", finish, rules)
				}
				if head, err := l.Head(ctx, "parent"); err != nil || head != before {
					t.Errorf("%s: the session has changed: %v, %v", finish, head, err)
				}
			}
		})
	}
}

// A redaction erases unreadable events too, and reports possible copies.
func TestRedactionAmongDamage(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := testkit.Open(t, testkit.Stores["jsonl"](dir), eventlog.Options{SpillOver: 1000})
	copied := func(session string, seq int64) event.Event {
		e := event.UserMessage("a copy")
		e.Metadata = fmt.Appendf(nil, `{"fork_origin":{"session_id":%q,"event_id":"%s","seq":%d}}`, session, event.NewID(), seq)
		return e
	}
	lost := snapshotEvent(1, `"state":{"said":"`+strings.Repeat("lost ", 1000)+`"}`)
	compaction := event.Event{Type: event.CompactionTriggered,
		Data: []byte(`{"strategy":"s","trigger":"t","covers":{"from":1,"to":1},"summary":"he said hello"}`)}
	for session, events := range map[string][]event.Event{
		"a":       {event.UserMessage("hello"), snapshotEvent(1, `"state":{}`), lost, compaction, event.UserMessage("bye")},
		"copy":    {copied("a", 1), copied("a", 2), copied("b", 3)},
		"again":   {copied("copy", 1), copied("other", 2)},
		"damaged": {event.UserMessage("hello")},
	} {
		if _, err := l.Append(ctx, session, eventlog.New(), events...); err != nil {
			t.Fatal(err)
		}
	}
	body := l.Store()
	blobs, _ := eventlog.As[eventlog.Blobs](body)
	for info, err := range blobs.ListBlobs(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "blobs", info.Digest.Hex()[:2], info.Digest.Hex()), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Append(ctx, "damaged", eventlog.Any(), event.UserMessage("bye")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "damaged.jsonl")
	line, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append([]byte("bad"), line...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Redact(ctx, l, "a", []int64{1}, erase.RedactOptions{DryRun: true}); !errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), `session "damaged"`) {
		t.Errorf("blobs in use cannot be told: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	done, err := erase.Redact(ctx, l, "a", []int64{1}, erase.RedactOptions{Reason: ""})
	if err != nil {
		t.Fatal(err)
	}
	if got := refs(done.Erased); got != "a 1, a 2, a 3" {
		t.Errorf("erased %s", got)
	}
	if got := refs(done.Untouched); got != "a 4, copy 1, copy 2, again 1" && got != "a 4, again 1, copy 1, copy 2" {
		t.Errorf("not touched: %s", got)
	}
	if report, err := verify.Session(ctx, l, "a"); err != nil || len(report.Defects) > 0 {
		t.Errorf("%v, %v", report.Defects, err)
	}
	if err := os.WriteFile(path, append([]byte("bad"), line...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "torn.jsonl"), []byte(`{"crc":"00000000"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if done, err := erase.Redact(ctx, l, "a", []int64{5}, erase.RedactOptions{Reason: ""}); err != nil || strings.Join(done.Unread, " ") != "damaged torn" {
		t.Errorf("%+v, %v", done, err)
	}
}

func refs(events []erase.EventRef) string {
	var texts []string
	for _, e := range events {
		texts = append(texts, fmt.Sprintf("%s %d", e.Session, e.Seq))
	}
	return strings.Join(texts, ", ")
}

// An event that a fork shares is redacted where it is held, and the error says
// where that is.
func TestRedactionOfSharedEvent(t *testing.T) {
	ctx := t.Context()
	l := testkit.Open(t, testkit.Stores["jsonl"](t.TempDir()))
	head, err := l.Append(ctx, "grandparent", eventlog.New(), event.UserMessage("one"))
	for _, family := range [][2]string{{"grandparent", "parent"}, {"parent", "child"}} {
		if err == nil {
			_, err = testkit.Fork(ctx, l, family[1], family[0], head.Seq)
		}
		if err == nil {
			head, err = l.Head(ctx, family[1])
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for seq, holder := range map[int64]string{1: `"grandparent"`, 2: `"parent"`, 3: `"parent"`} {
		if _, err := erase.Redact(ctx, l, "child", []int64{seq}, erase.RedactOptions{Reason: ""}); !errors.Is(err, event.ErrInvalidTree) || !strings.Contains(err.Error(), "session "+holder+": redact it there") {
			t.Errorf("event %d: %v", seq, err)
		}
	}
}

// Remove with a head removes that state of the session only.
func TestRemoveAtAHead(t *testing.T) {
	log := eventlog.Open(memory.New())
	head, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "s", eventlog.At(head), event.UserMessage("more")); err != nil {
		t.Fatal(err)
	}
	var conflict *eventlog.ConflictError
	if err := erase.Remove(t.Context(), log, "s", erase.RemoveOptions{Heads: map[string]event.Head{"s": head}}); !errors.As(err, &conflict) || conflict.Expected != head {
		t.Errorf("at the old head: %v", err)
	}
	others := map[string]event.Head{"another": head}
	if err := erase.Remove(t.Context(), log, "s", erase.RemoveOptions{Heads: others}); !errors.As(err, &conflict) {
		t.Errorf("without an entry: %v", err)
	}
	now, err := log.Head(t.Context(), "s")
	if err != nil || erase.Remove(t.Context(), log, "s", erase.RemoveOptions{Heads: map[string]event.Head{"s": now}}) != nil {
		t.Errorf("at the head: %v", err)
	}
	if _, err := log.Head(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the session after its removal: %v", err)
	}
}

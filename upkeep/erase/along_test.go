package erase_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

const confided = "the PIN of the vault is 4242"

// marked is an event with a mark in its metadata.
func marked(e event.Event, key string) event.Event {
	e.Metadata = jsontext.Value(`{"` + key + `":true}`)
	return e
}

func raw(t event.Type, data string) event.Event {
	return event.Event{Type: t, Data: jsontext.Value(data)}
}

func snapshotOf(seq int, state string) event.Event {
	return raw(event.ProjectionSnapshotted, fmt.Sprintf(`{"projection":"p","version":1,"snapshot_id":"0190a5a4-7d4c-7000-8000-%012d",`+
		`"state_digest":"%s","index":0,"turn_index":0,"trigger":"manual","seq":%d%s}`, seq, event.DigestOf([]byte(confided)), seq, state))
}

// A redaction also erases events with a digest or a part of the content, in the session and
// in its forks, and lists events that may repeat the content.
func TestAlong(t *testing.T) {
	ctx := t.Context()
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			l := testkit.Open(t, open(t.TempDir()))
			digest := event.DigestOf([]byte(confided))
			head, err := l.Append(ctx, "a", eventlog.New(),
				event.New(event.Session{Title: "The PIN of the vault…"}), // 1: begins the text
				event.New(event.StepStart{Step: 1, RequestDigest: digest}),
				event.UserMessage(confided), // 3: to be erased
				event.New(event.StepStart{Step: 2, RequestDigest: digest}),
				event.New(event.StepStart{Step: 3}),
				cachedStep(),
				marked(raw("codex:event", `{"message":"`+confided+`"}`), mark.Repeats),
				marked(raw("codex:event", `{"message":"other words entirely"}`), mark.Repeats),
				event.UserMessage("You said that "+confided+"."), // 9: listed
				event.New(event.Compaction{Summary: "a vault", Covers: event.Stretch{From: 1, To: 2}}),
				snapshotOf(10, ""),
				snapshotOf(11, `,"state":{"said":"it"}`),
				event.UserMessage("unrelated"),
			)
			if err != nil {
				t.Fatal(err)
			}
			last, err := l.Event(ctx, "a", head.Seq)
			if err != nil {
				t.Fatal(err)
			}
			fork := event.New(event.Fork{Parent: "a", Seq: last.Seq, EventID: last.ID, Hash: head.Hash})
			if _, err := l.Append(ctx, "fork", eventlog.New(), fork, snapshotOf(14, "")); err != nil {
				t.Fatal(err)
			}
			done, err := erase.Redact(ctx, l, "a", []int64{3})
			if err != nil {
				t.Fatal(err)
			}
			seqs := func(refs []erase.EventRef) (all []string) {
				for _, r := range refs {
					all = append(all, fmt.Sprint(r.Session, " ", r.Seq))
				}
				return all
			}
			if diff := cmp.Diff([]string{"a 3", "a 1", "a 4", "a 6", "a 7", "a 11", "a 12", "fork 15"}, seqs(done.Erased)); diff != "" {
				t.Errorf("erased (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"a 9", "a 10"}, seqs(done.Untouched)); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			for _, session := range []string{"a", "fork"} {
				if report, err := verify.New(l).Lines(ctx, session); err != nil || len(report.Defects) > 0 {
					t.Errorf("%s: %v, %v", session, report.Defects, err)
				}
			}
		})
	}
}

// A title that begins an erased text goes along with a redaction by a text, too: the
// title may end inside the text.
func TestTitlesGoAlongWithAMatch(t *testing.T) {
	l := testkit.Open(t, testkit.Stores["jsonl"](t.TempDir()))
	if _, err := l.Append(t.Context(), "a", eventlog.New(),
		event.New(event.Session{Title: "my password is hunter2-is-my-ve…"}), event.UserMessage("My password is hunter2-is-my-very-long-password ok")); err != nil {
		t.Fatal(err)
	}
	pattern, err := search.Literal("hunter2-is-my-very-long-password")
	if err != nil {
		t.Fatal(err)
	}
	done, err := erase.Match(t.Context(), l, pattern, nil)
	if err != nil || len(done.Erased) != 2 {
		t.Errorf("erased %v, %v", done.Erased, err)
	}
}

// After a redaction by an expression, every text that matched is looked for in the files,
// not the first one of an event only.
func TestAllMatchesAreLookedForInTheFiles(t *testing.T) {
	dir := t.TempDir()
	l := testkit.Open(t, testkit.Stores["jsonl"](dir))
	if _, err := l.Append(t.Context(), "a", eventlog.New(), event.UserMessage("hunter1 and hunter2")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("it is hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	pattern, err := search.Regexp("hunter[0-9]")
	if err != nil {
		t.Fatal(err)
	}
	done, err := erase.Match(t.Context(), l, pattern, nil)
	if err != nil || len(done.Files) != 1 {
		t.Errorf("left in %v, %v", done.Files, err)
	}
}

// A redaction in the session of a child lists the copies in all sessions of the family.
func TestCopiesInTheFamilyAreListed(t *testing.T) {
	ctx := t.Context()
	for name, open := range testkit.Stores {
		t.Run(name, func(t *testing.T) {
			l := testkit.Open(t, open(t.TempDir()))
			add := func(session string, events ...event.Event) event.Head {
				t.Helper()
				head, err := l.Append(ctx, session, eventlog.Any(), events...)
				if err != nil {
					t.Fatal(err)
				}
				return head
			}
			ended := func(child string) event.Event {
				return event.New(event.Child{State: event.ChildCompleted, ChildID: child, ChildSessionID: child, Summary: "It says: " + confided})
			}
			head := add("top", event.UserMessage("unrelated"))
			first, err := l.Event(ctx, "top", 1)
			if err != nil {
				t.Fatal(err)
			}
			add("middle", event.New(event.Fork{Parent: "top", Seq: 1, EventID: first.ID, Hash: head.Hash, Child: event.ForkChild{ChildID: "middle"}}))
			add("low", event.New(event.Session{Parent: event.SessionParent{SessionID: "middle"}}), event.UserMessage(confided))
			add("other", event.New(event.Session{Parent: event.SessionParent{SessionID: "top"}}), event.UserMessage("and "+confided))
			add("top", ended("middle"), event.New(event.Child{State: event.ChildStarted, ChildID: "other", ChildSessionID: "other"}))
			add("middle", ended("low"))
			done, err := erase.Redact(ctx, l, "low", []int64{2})
			if err != nil {
				t.Fatal(err)
			}
			var listed []string
			for _, r := range done.Untouched {
				listed = append(listed, fmt.Sprint(r.Session, " ", r.Seq))
			}
			if diff := cmp.Diff([]string{"middle 3", "top 2", "other 2"}, listed); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
}

// cachedStep is the start of a step with the hash of a cached prefix.
func cachedStep() event.Event {
	start := event.StepStart{Step: 4}
	start.PromptCache.PrefixHash = "x"
	return event.New(start)
}

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
)

// A redaction by a text is killed at any moment and asked for again. The end is the same
// as without the kill, and no file has the text.
func TestKilledMatch(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{kindJSONL: "log", kindSQLite: "s.db"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			full := t.TempDir()
			confideEverywhere(t, place{kind: kind, path: filepath.Join(full, name)})
			var want []string
			for round := range *rounds {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(full)); err != nil {
					t.Fatal(err)
				}
				seed := uint64(time.Now().UnixNano())
				k := &killing{t: t, dir: dir, rand: rand.New(rand.NewPCG(seed, 0)), store: place{kind: kind, path: filepath.Join(dir, name)}}
				if round > 0 {
					k.killed("redact", "--match", secretWord)
				}
				k.again("redact", "--match", secretWord)
				verifyStore(t, k.store)
				k.wantNoSecret()
				got := k.structure()
				if want == nil {
					want = got
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("seed %d: the end differs (-without a kill +with one):\n%s", seed, diff)
				}
			}
		})
	}
}

// confideEverywhere fills a store with a secret in texts, bodies, forks and copies.
func confideEverywhere(t *testing.T, at place) {
	t.Helper()
	err := at.with(forWriting, func(l *eventlog.Log) error {
		ref, err := l.PutBlob(t.Context(), strings.NewReader("a body with "+secretWord))
		if err != nil {
			return err
		}
		withBody := event.UserMessage("with a body")
		if err := withBody.AddBlobs(ref.Blob); err != nil {
			return err
		}
		events := []event.Event{event.UserMessage("hello"), event.UserMessage(secretWord), withBody,
			event.UserMessage(strings.Repeat(secretWord, 30_000)), event.UserMessage("bye")}
		if _, err := l.Append(t.Context(), "a", eventlog.New(), events...); err != nil {
			return err
		}
		for _, id := range []string{"fork-1", "fork-2"} {
			if _, err := fork.At(t.Context(), l, "a", fork.AtSeq(5), fork.Options{ID: id}); err != nil {
				return err
			}
			if _, err := l.Append(t.Context(), id, eventlog.Any(), event.UserMessage("again "+secretWord+id)); err != nil {
				return err
			}
		}
		_, err = fork.Copy(t.Context(), l, "a", fork.CopyOptions{ID: "copy"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// again runs a command that may find nothing to do.
func (k *killing) again(args ...string) {
	k.t.Helper()
	cmd, out := k.command(args...)
	if err := cmd.Run(); err != nil && !strings.Contains(out.String(), "nothing found to erase") {
		k.t.Errorf("logtool %v: %v: %s", args, err, out)
	}
}

func (k *killing) wantNoSecret() {
	k.t.Helper()
	err := filepath.WalkDir(k.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if bytes.Contains(body, []byte(secretWord)) {
			k.t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// structure lists the events of all sessions, without random values.
func (k *killing) structure() (lines []string) {
	k.t.Helper()
	err := k.store.with(forReading, func(l *eventlog.Log) error {
		for info, err := range l.Sessions(k.t.Context()) {
			if err != nil {
				return err
			}
			for e, err := range l.Store().Read(k.t.Context(), info.ID, eventlog.Span{}) {
				if err != nil {
					return err
				}
				line := fmt.Sprintf("%s %d %s %t %s", e.SessionID, e.Seq, e.Type, e.Redacted(), e.Kept())
				if e.Type == event.Redacted {
					line += string(e.Data)
				}
				lines = append(lines, line)
			}
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return lines
}

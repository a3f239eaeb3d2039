package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
)

// A file in the way stays, and the log gets no fork.
func TestResumeOverwritesNothing(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "taken.jsonl")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := resumed{Program: "claude", Session: "child", Parent: "s", At: 1, Path: file}
	err := r.write(t.Context(), log, &interop.Written{Body: []byte("other")})
	if err == nil || !strings.Contains(err.Error(), "exists already: nothing was written") {
		t.Errorf("got error %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if _, err := log.Head(t.Context(), "child"); err == nil {
		t.Error("the log has a fork")
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("files: %v, %v", entries, err)
	}
}

// The program gets the history that the log has for the fork, whatever turn --compact-from names.
func TestCompactedHistory(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "log")
	if code := quiet().run(t.Context(), []string{"--store", store, "import", filepath.Join("..", "..", "testdata", "transcripts")}); code > 1 {
		t.Fatal(code)
	}
	log := eventlog.Open(jsonl.New(store))
	defer log.Close()
	sessions, err := (&app{}).sessions(t.Context(), log, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, id := range sessions {
		if i%testsize.Pick(2, 1, 1) > 0 {
			continue
		}
		head, err := log.Head(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for turn := range 12 {
			c, err := conversationOf(t.Context(), log, id, head.Seq)
			if err != nil {
				break
			}
			s, err := compactBefore(t.Context(), log, id, head.Seq, turn, &c)
			if err != nil {
				continue
			}
			f, err := fork.At(t.Context(), log, id, fork.AtSeq(head.Seq), fork.Options{Force: true})
			if err == nil {
				_, err = log.Append(t.Context(), f.ID, eventlog.At(f.Head), event.New(s.compaction))
			}
			if err != nil {
				t.Fatal(err)
			}
			var want []projection.Entry
			for e, err := range projection.Entries(t.Context(), log, f.ID, projection.RenderOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, e)
			}
			if diff := cmp.Diff(want, c.History); diff != "" {
				t.Errorf("%s, turn %d: %.2000s", id, turn, diff)
			}
			compared++
		}
	}
	if compared < 10 {
		t.Errorf("compared %d histories", compared)
	}
}

// A session of another person's log is restored below the folder of its program only.
func TestRestoreStaysBelowTheFolder(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	a := &app{getenv: environment("HOME=" + t.TempDir())}
	for folder, below := range map[string]bool{"C--shop": true, "..": false} {
		id := map[bool]string{true: "aa", false: "bb"}[below]
		e := event.Event{Type: "claude:user", Data: []byte(`{"type":"user","uuid":"1","cwd":"C:\\shop","sessionId":"x"}`),
			Metadata: []byte(`{"origin":{"source":"C:\\Users\\ada\\.claude\\projects\\` + folder + `\\x.jsonl","line":1,"offset":0,"bytes":9,"digest":"sha256:` + strings.Repeat("0", 64) + `"}}`)}
		start := event.New(event.Session{Source: event.SessionSource{Format: "claude"}})
		if _, err := log.Append(t.Context(), id, eventlog.New(), start, e); err != nil {
			t.Fatal(err)
		}
		f := a.restoreOne(t.Context(), log, id, &restoration{dry: true, present: map[string]map[string]bool{}})
		if (f.err == nil) != below || (f.Path != "") != below {
			t.Errorf("%s: %q, %v", folder, f.Path, f.err)
		}
	}
}

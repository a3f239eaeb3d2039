package secrets_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/search"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/sqlite"
)

// fill stores sessions with the token: as the title, in a message, in spilled data, in a
// body, and in the state of a snapshot.
func fill(t *testing.T, store eventlog.Store) (body event.Digest) {
	t.Helper()
	log := eventlog.Open(store, eventlog.Options{SpillOver: 4000})
	question := event.UserMessage("deploy it with " + token + " please")
	if _, err := log.Append(t.Context(), "a", eventlog.New(), question, event.New(event.Session{Title: "deploy " + token})); err != nil {
		t.Fatal(err)
	}
	long := event.AssistantMessage(strings.Repeat("a long text ", 600) + token)
	if _, err := log.Append(t.Context(), "a", eventlog.Any(), long); err != nil {
		t.Fatal(err)
	}
	live, err := projection.Resume(t.Context(), log, "a", projection.Session())
	if err == nil {
		_, _, err = live.Snapshot(t.Context(), projection.Request{Trigger: projection.Manual, Body: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := log.StoreArtifact(t.Context(), "b", eventlog.New(), event.Artifact{ArtifactID: "x", Kind: "file", MediaType: "text/plain"}, strings.NewReader("TOKEN="+token+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return a.Body.Blob
}

func stores(t *testing.T) map[string]func() eventlog.Store {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "log.db")
	inMemory := memory.New()
	return map[string]func() eventlog.Store{
		"jsonl":  func() eventlog.Store { return jsonl.New(dir) },
		"sqlite": func() eventlog.Store { return sqlite.New(file) },
		"memory": func() eventlog.Store { return inMemory },
	}
}

// Whatever a log over a view gives has masks: events, listings, states, bodies, hits.
func TestViewShowsNoSecret(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			body := fill(t, open())
			log := eventlog.Open(secrets.View(open(), secrets.Default()))
			var shown strings.Builder
			show := func(e *event.Event) { fmt.Fprintln(&shown, string(e.Data), string(e.Metadata)) }
			for _, r := range []eventlog.Range{eventlog.All(), eventlog.Last(2), eventlog.All().OnPath().Backward(), eventlog.All().Bare()} {
				for e, err := range log.Read(t.Context(), "a", r) {
					if err != nil {
						t.Fatal(err)
					}
					show(&e)
				}
			}
			for info, err := range log.Sessions(t.Context()) {
				if err = errors.Join(err, info.Err); err != nil {
					t.Fatal(err)
				}
				show(&info.First)
				show(&info.Last)
			}
			view, err := projection.Load(t.Context(), log, "a", projection.History())
			if err != nil {
				t.Fatal(err)
			}
			messages, err := view.State.Messages()
			if err != nil || len(messages) != 2 {
				t.Fatalf("%d messages, %v", len(messages), err)
			}
			for _, m := range messages {
				fmt.Fprintln(&shown, m.Message.Text())
			}
			fmt.Fprintln(&shown, readBlob(t, log, body))
			hits := 0
			for hit, err := range search.Events(t.Context(), log, search.Query{Text: "deploy"}) {
				if err != nil {
					t.Fatal(err)
				}
				hits++
				fmt.Fprintln(&shown, hit.Snippet)
			}
			for hit := range search.Events(t.Context(), log, search.Query{Text: token}) {
				t.Errorf("a search for the token finds event %d", hit.Seq)
			}
			ctx, cancel := context.WithCancel(t.Context())
			for e, err := range log.Watch(ctx, "a", 1) {
				if err != nil {
					break
				}
				show(&e)
				if e.Seq == 3 {
					cancel()
				}
			}
			cancel()
			if strings.Contains(shown.String(), token) || hits != 2 || strings.Count(shown.String(), masked) < 12 {
				t.Errorf("%d hits, %d masks in %.2000s", hits, strings.Count(shown.String(), masked), shown.String())
			}
			if err := log.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A state over a view has the masks of the events, also if a snapshot has the state. In the
// JSON of a state, a secret at the start of a line comes after a letter: \n.
func TestViewMasksStates(t *testing.T) {
	store := memory.New()
	log := eventlog.Open(store)
	filler := strings.Repeat(" filler", 15000)
	for range 90 {
		if _, err := log.Append(t.Context(), "a", eventlog.Any(), event.UserMessage("a\n"+token+"\n"+filler)); err != nil {
			t.Fatal(err)
		}
	}
	live, err := projection.Resume(t.Context(), log, "a", projection.Of("", projection.History()))
	if err == nil {
		_, _, err = live.Snapshot(t.Context(), projection.Request{Trigger: projection.Manual, Body: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	shown := eventlog.Open(secrets.View(store, secrets.Default()))
	view, err := projection.Load(t.Context(), shown, "a", projection.History())
	if err != nil {
		t.Fatal(err)
	}
	messages, err := view.State.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if m.Message.Text() != "a\n"+masked+"\n"+filler {
			t.Fatalf("%.80q", m.Message.Text())
		}
	}
	var entries []projection.Entry
	for e, err := range projection.Entries(t.Context(), shown, "a", projection.RenderOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	if diff := cmp.Diff(messages, entries); diff != "" {
		t.Errorf("Entries differs from Messages:\n%.2000s", diff)
	}
}

func TestViewIsReadOnly(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			fill(t, open())
			log := eventlog.Open(secrets.View(open(), secrets.Default()))
			if _, err := log.Append(t.Context(), "a", eventlog.Any(), event.UserMessage("more")); !errors.Is(err, eventlog.ErrReadOnly) {
				t.Errorf("append: %v", err)
			}
			if _, err := log.PutBlob(t.Context(), strings.NewReader("more")); !errors.Is(err, eventlog.ErrReadOnly) {
				t.Errorf("put blob: %v", err)
			}
			if _, ok := eventlog.As[eventlog.Eraser](log.Store()); ok {
				t.Error("a view erases")
			}
			if index, ok := eventlog.As[eventlog.Searcher](log.Store()); ok && !errors.Is(index.Index(t.Context(), false), eventlog.ErrReadOnly) {
				t.Error("a view indexes")
			}
		})
	}
}

// A damaged body is an error, although the log does not compare its digest again.
func TestViewChecksBodies(t *testing.T) {
	store := memory.New()
	body := fill(t, store)
	log := eventlog.Open(secrets.View(brokenBlobs{store}, secrets.Default()))
	r, err := log.OpenBlob(t.Context(), body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("read: %v", err)
	}
}

func TestScan(t *testing.T) {
	for name, open := range stores(t) {
		t.Run(name, func(t *testing.T) {
			body := fill(t, open())
			log := eventlog.Open(open())
			defer log.Close()
			scan := func(sessions ...string) (lines []string) {
				for l, err := range secrets.Scan(t.Context(), log, secrets.Default(), sessions...) {
					if err != nil {
						lines = append(lines, "error of "+l.Session)
						continue
					}
					lines = append(lines, fmt.Sprintf("%s %d %s %s %s", l.Session, l.Seq, l.Type, l.Member, l.Rule))
				}
				return lines
			}
			a := []string{
				"a 1 message_added data/parts/0/text github-token",
				"a 2 session_started data/title github-token",
				"a 3 message_added data/parts/0/text github-token",
			}
			b := []string{"b 1 artifact_recorded blob/" + string(body) + " github-token"}
			got := scan()
			var rest []string // the snapshot has the states inline or as blobs, as their size is
			for _, line := range got {
				if !strings.HasPrefix(line, "a 4 projection_snapshotted ") {
					rest = append(rest, line)
				}
			}
			if diff := cmp.Diff(append(a, b...), rest); diff != "" {
				t.Error(diff)
			}
			if len(got) == len(rest) {
				t.Error("nothing is found in the snapshot")
			}
			if diff := cmp.Diff(append([]string{"error of missing"}, b...), scan("missing", "b")); diff != "" {
				t.Error(diff)
			}
			for range secrets.Scan(t.Context(), log, secrets.Default()) {
				break
			}
		})
	}
}

// A rule with a mask of its own masks structural members, too.
func TestRuleWithAMask(t *testing.T) {
	scanner, err := secrets.New(secrets.Rule{Name: "home", Mask: "~", Keywords: []string{"/home"}, Pattern: `/home/ada`})
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	log := eventlog.Open(store)
	e := event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("/home/ada/1", "ls", []byte(`{"/home/ada":"/home/ada/x"}`))}})
	if err := e.SetMetadata("origin", map[string]string{"source": "/home/ada/log"}); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "s", eventlog.New(), e); err != nil {
		t.Fatal(err)
	}
	for got, err := range eventlog.Open(secrets.View(store, scanner)).Read(t.Context(), "s", eventlog.All()) {
		if text := string(got.Data) + string(got.Metadata); err != nil || strings.Contains(text, "ada") || strings.Count(text, "~") != 4 {
			t.Errorf("%s, %v", text, err)
		}
	}
}

package genkit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/ai/exp"

	adapter "github.com/convlog/convlog/adapters/genkit"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

type (
	snapshot = exp.SessionSnapshot[state]
	store    = adapter.Store[state]
)

type state struct {
	Counter int            `json:"counter"`
	Any     map[string]any `json:"any,omitempty"`
}

// save stores a snapshot whose state has messages and a counter.
func save(t testing.TB, s *store, id, session string, counter int, messages ...*ai.Message) *snapshot {
	t.Helper()
	now := time.Now()
	saved, err := s.SaveSnapshot(t.Context(), id, func(*snapshot) (*snapshot, error) {
		return &snapshot{SessionID: session, CreatedAt: now, UpdatedAt: now, State: &exp.SessionState[state]{SessionID: session, Messages: messages, Custom: state{Counter: counter}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func get(t testing.TB, s *store, id string) *snapshot {
	t.Helper()
	got, err := s.GetSnapshot(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func latest(t testing.TB, s *store, session string) *snapshot {
	t.Helper()
	got, err := s.GetLatestSnapshot(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("%s: %v %v\n got %s\nwant %s", what, errA, errB, a, b)
	}
}

func user(text string) *ai.Message  { return ai.NewUserTextMessage(text) }
func model(text string) *ai.Message { return ai.NewModelTextMessage(text) }

// The contract of exp.SessionStore. The tests of Genkit for it are internal to Genkit.
func TestContract(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		s := adapter.New[state](open(t))
		if got := get(t, s, "none"); got != nil {
			t.Errorf("unknown snapshot: %+v", got)
		}
		if got := latest(t, s, "none"); got != nil {
			t.Errorf("unknown session: %+v", got)
		}
		if _, err := s.GetLatestSnapshot(t.Context(), ""); err == nil {
			t.Error("an empty session id is accepted")
		}
		first := save(t, s, "", "one", 1, user("a"))
		if first.SnapshotID == "" || first.Status != exp.SnapshotStatusCompleted {
			t.Errorf("saved %+v", first)
		}
		z := save(t, s, "z", "one", 2, user("a"), model("b"))
		tied, err := s.SaveSnapshot(t.Context(), "a", func(*snapshot) (*snapshot, error) { // created at the same time
			return &snapshot{SessionID: "one", ParentID: "z", Status: exp.SnapshotStatusPending, CreatedAt: z.CreatedAt, UpdatedAt: z.CreatedAt}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		save(t, s, "x", "other", 9)
		again := adapter.New[state](open(t)) // as after a restart
		for _, want := range []*snapshot{first, z, tied} {
			same(t, want.SnapshotID, get(t, again, want.SnapshotID), want)
		}
		same(t, "latest", latest(t, again, "one"), z)
		beat := time.Now().Add(time.Second)
		rewritten, err := again.SaveSnapshot(t.Context(), "a", func(existing *snapshot) (*snapshot, error) {
			same(t, "existing", existing, tied)
			next := *existing
			next.SessionID, next.HeartbeatAt = "another", &beat
			next.State = &exp.SessionState[state]{Messages: []*ai.Message{user("a")}, Custom: state{Counter: 3}}
			return &next, nil
		})
		if err != nil || rewritten.SessionID != "one" || rewritten.Status != exp.SnapshotStatusPending {
			t.Errorf("rewritten %+v, %v", rewritten, err)
		}
		same(t, "rewritten", get(t, s, "a"), rewritten)
		same(t, "latest", latest(t, s, "one"), z)
		same(t, "untouched", get(t, s, "z"), z)
		if skipped, err := s.SaveSnapshot(t.Context(), "a", func(*snapshot) (*snapshot, error) { return nil, nil }); skipped != nil || err != nil {
			t.Errorf("skipped: %v, %v", skipped, err)
		}
		if _, err := s.SaveSnapshot(t.Context(), "q", func(*snapshot) (*snapshot, error) { return &snapshot{}, nil }); !errors.Is(err, exp.ErrSessionIDRequired) {
			t.Errorf("without a session: %v", err)
		}
		if _, err := s.SaveSnapshot(t.Context(), "a", func(*snapshot) (*snapshot, error) { return nil, context.Canceled }); !errors.Is(err, context.Canceled) {
			t.Errorf("an error of fn: %v", err)
		}
	})
}

// Writers of one snapshot see each other's results.
func TestSaveIsAtomic(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		const writers, each = 4, 5
		var group sync.WaitGroup
		for range writers {
			s := adapter.New[state](open(t))
			group.Go(func() {
				for range each {
					if _, err := count(t.Context(), s, "c"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		got := get(t, adapter.New[state](open(t)), "c")
		if got.State.Custom.Counter != writers*each || len(got.State.Messages) != writers*each {
			t.Errorf("counted %d, %d messages", got.State.Custom.Counter, len(got.State.Messages))
		}
	})
}

// everyMessage has each kind of part.
func everyMessage() []*ai.Message {
	png := "data:image/png;base64," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("p"), 20<<10))
	m := map[string]any{"k": "<v>", "n": 1.5}
	parts := []*ai.Part{
		ai.NewTextPart("text"), ai.NewTextPart(""), {Kind: ai.PartText, Text: "with metadata", Metadata: m}, ai.NewReasoningPart("thinking", []byte("sig")),
		ai.NewMediaPart("image/png", png), ai.NewMediaPart("image/png", "data:image/png;base64,cG5n"), ai.NewMediaPart("", "data:audio/wav;base64,cG5n"), ai.NewMediaPart("image/png", "data:image/png;base64,!"),
		ai.NewMediaPart("video/mp4", "https://example.com/v.mp4"), ai.NewDataPart("data"), ai.NewResourcePart("file://x"), ai.NewCustomPart(m),
		ai.NewToolRequestPart(&ai.ToolRequest{Name: "look", Ref: "r1", Input: m}), ai.NewToolRequestPart(&ai.ToolRequest{Name: "look", Input: "text"}), ai.NewToolRequestPart(&ai.ToolRequest{Name: "none"}),
		ai.NewToolResponsePart(&ai.ToolResponse{Name: "look", Ref: "r1", Output: m}), ai.NewToolResponsePart(&ai.ToolResponse{Name: "look", Output: "plain"}), ai.NewToolResponsePart(&ai.ToolResponse{Name: "none"}),
		ai.NewToolResponsePart(&ai.ToolResponse{Name: "more", Ref: "r9", Output: 1.0, Content: []*ai.Part{ai.NewTextPart("x")}}), ai.NewToolResponsePart(&ai.ToolResponse{Name: "json", Output: `{"a":1}`}),
	}
	all := []*ai.Message{{Role: ai.RoleSystem, Content: parts[:1], Metadata: m}, {Role: ai.RoleUser}, {Role: ai.RoleModel}, {Role: "odd", Content: parts}}
	for _, p := range parts {
		for _, role := range []ai.Role{ai.RoleUser, ai.RoleModel, ai.RoleTool} {
			all = append(all, &ai.Message{Role: role, Content: []*ai.Part{p}})
		}
	}
	return all
}

func TestStatesComeBackEqual(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adapter.New[state](log)
	want := &snapshot{SessionID: "s", ParentID: "p", Status: exp.SnapshotStatusFailed, FinishReason: exp.AgentFinishReasonFailed, CreatedAt: time.Now(), UpdatedAt: time.Now()}
	want.State = &exp.SessionState[state]{SessionID: "s", Messages: everyMessage(), Custom: state{7, map[string]any{"x": []any{"<&>", nil}}}}
	want.State.Artifacts = []*exp.Artifact{{Name: "a", Metadata: map[string]any{"k": "v"}, Parts: []*ai.Part{ai.NewTextPart("body")}}}
	if _, err := s.SaveSnapshot(t.Context(), "a", func(*snapshot) (*snapshot, error) { return want, nil }); err != nil {
		t.Fatal(err)
	}
	for i, m := range get(t, s, "a").State.Messages {
		same(t, fmt.Sprint("message ", i), m, want.State.Messages[i])
	}
	same(t, "snapshot", get(t, s, "a"), want)
	before, err := log.Head(t.Context(), "genkit/s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveSnapshot(t.Context(), "b", func(*snapshot) (*snapshot, error) { return want, nil }); err != nil {
		t.Fatal(err)
	}
	if after, err := log.Head(t.Context(), "genkit/s"); err != nil || after.Seq != before.Seq+1 {
		t.Errorf("an equal state added %d events, %v", after.Seq-before.Seq, err)
	}
	report, err := verify.Session(t.Context(), log, "genkit/s")
	if err != nil || len(report.Defects) > 0 {
		t.Errorf("verify: %v, %v", report.Defects, err)
	}
}

// guarded is a store that counts the stored and the read bodies. A body is loose if the store lock is released before the
// next append: a collection may remove it.
type guarded struct {
	*jsonl.Store
	puts, opens, pending, loose int
}

func (g *guarded) Lock(ctx context.Context, exclusive bool) (context.Context, func(), error) {
	locked, unlock, err := g.Store.Lock(ctx, exclusive)
	return locked, func() { g.loose += g.pending; unlock() }, err
}

func (g *guarded) PutBlob(ctx context.Context, r io.Reader) (event.Digest, int64, error) {
	g.puts++
	g.pending++
	return g.Store.PutBlob(ctx, r)
}

func (g *guarded) Append(ctx context.Context, session string, expect event.Head, events []event.Event, durable bool) error {
	g.pending = 0
	return g.Store.Append(ctx, session, expect, events, durable)
}

func (g *guarded) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	g.opens++
	return g.Store.OpenBlob(ctx, d)
}

// A large body is stored once, in a blob that no collection removes before the message is stored. Later snapshots do not read it.
func TestALargeBodyIsABlob(t *testing.T) {
	g := &guarded{Store: jsonl.New(t.TempDir())}
	s := adapter.New[state](testkit.Open(t, g))
	body := "data:image/png;base64," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("p"), 1<<20))
	image := ai.NewMessage(ai.RoleUser, nil, ai.NewMediaPart("image/png", body))
	save(t, s, "a", "s", 1, user("look"), image)
	g.opens = 0
	want := save(t, s, "b", "s", 2, user("look"), image, model("a parcel"))
	if g.puts != 1 || g.loose != 0 || g.opens != 0 {
		t.Errorf("%d bodies stored, %d loose, %d read; want 1, 0, 0", g.puts, g.loose, g.opens)
	}
	same(t, "b", get(t, s, "b"), want)
}

// A snapshot with other messages is a branch; the older snapshots keep theirs, and messages are stored once.
func TestBranches(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adapter.New[state](log)
	one := save(t, s, "one", "s", 1, user("a"), model("b"), user("c"))
	two := save(t, s, "two", "s", 2, user("a"), model("b"), user("d"), model("e"))
	three := save(t, s, "three", "s", 3, user("new"))
	four := save(t, s, "four", "s", 4, user("a"), model("b"), user("c"), model("f"))
	for _, want := range []*snapshot{one, two, three, four} {
		same(t, want.SnapshotID, get(t, s, want.SnapshotID), want)
	}
	if v, err := projection.Load(t.Context(), log, "genkit/s", projection.Branches()); err != nil || len(v.State.Orphaned) < 2 {
		t.Errorf("branches %+v, %v", v.State, err)
	}
}

// A fork has a snapshot of its end, and goes on by itself.
func TestForks(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adapter.New[state](log)
	save(t, s, "one", "s", 1, user("a"), model("b"))
	original := save(t, s, "two", "s", 2, user("a"), model("b"), user("c"), model("d"))
	for _, id := range []string{"", "genkit/fork"} {
		f, err := fork.At(t.Context(), log, "genkit/s", fork.BeforeTurn(1), fork.Options{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(f.ID, "genkit/")
		end := latest(t, s, name)
		if end == nil || end.SessionID != name || end.State.Custom.Counter != 1 || len(end.State.Messages) != 2 {
			t.Fatalf("the fork has %+v", end)
		}
		same(t, "by id", get(t, s, end.SnapshotID), end)
		next := save(t, s, "", name, 3, user("a"), model("b"), user("other"))
		same(t, "next", latest(t, s, name), next)
		same(t, "end", get(t, s, end.SnapshotID), end)
	}
	same(t, "original", latest(t, s, "s"), original)
	for _, id := range []string{"end:", "end:genkit/s", "end:genkit/s/x", "end:genkit/s/999", "end:none/1"} {
		if got := get(t, s, id); got != nil {
			t.Errorf("%s is %+v", id, got)
		}
	}
}

// A change by another process arrives.
func TestStatusChanges(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		s, other := adapter.New[state](open(t)), adapter.New[state](open(t))
		set := func(status exp.SnapshotStatus) {
			_, err := other.SaveSnapshot(t.Context(), "p", func(existing *snapshot) (*snapshot, error) {
				next := snapshot{SessionID: "s"}
				if existing != nil {
					next = *existing
				}
				next.Status = status
				return &next, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		set(exp.SnapshotStatusPending)
		ctx, cancel := context.WithCancel(t.Context())
		changes := s.OnSnapshotStatusChange(ctx, "p")
		if got := <-changes; got != exp.SnapshotStatusPending {
			t.Errorf("at first %q", got)
		}
		set(exp.SnapshotStatusPending)
		set(exp.SnapshotStatusAborted)
		if got := <-changes; got != exp.SnapshotStatusAborted {
			t.Errorf("then %q", got)
		}
		cancel()
		for range changes { // until it is closed
			t.Error("a change without a change")
		}
		if _, open := <-s.OnSnapshotStatusChange(t.Context(), "none"); open {
			t.Error("a missing snapshot has a status")
		}
	})
}

func TestHostileNames(t *testing.T) {
	s := adapter.New[state](adaptertest.Folder(t))
	long := strings.Repeat("x", 300)
	sum := sha256.Sum256([]byte(long))
	shortened := long[:150-len("genkit/")] + "~" + hex.EncodeToString(sum[:16]) // the id in the log of the long name
	names := []string{shortened, "a", "A", "a/b", "a%2Fb", "~", "~1", "\x00", "a\nb", "日本", long, long + "y", " ", ".", "end:", "genkit/a"}
	for i, name := range names {
		save(t, s, "snapshot "+name, name, i, user(name))
		save(t, s, name+"/id", "s", i)
	}
	for i, name := range names {
		if got := latest(t, s, name); got == nil || got.State.Custom.Counter != i {
			t.Errorf("session %+q: %+v", name, got)
		}
		if got := get(t, s, name+"/id"); got == nil || got.State.Custom.Counter != i {
			t.Errorf("snapshot %+q: %+v", name, got)
		}
	}
}

func TestBadInputStoresNothing(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adapter.New[state](log)
	save(t, s, "a", "s", 1, user("a"))
	for id, session := range map[string]string{"\xff": "s", "b": "\xff"} {
		if _, err := s.SaveSnapshot(t.Context(), id, func(*snapshot) (*snapshot, error) { return &snapshot{SessionID: session}, nil }); err == nil {
			t.Errorf("ids %q and %q are accepted", id, session)
		}
	}
	before, err := log.Head(t.Context(), "genkit/s")
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*ai.Message{
		"nil": nil, "metadata": {Role: ai.RoleUser, Metadata: map[string]any{"x": make(chan int)}},
		"input": ai.NewMessage(ai.RoleModel, nil, ai.NewToolRequestPart(&ai.ToolRequest{Name: "t", Input: func() {}})),
	} {
		_, err := s.SaveSnapshot(t.Context(), "a", func(existing *snapshot) (*snapshot, error) {
			existing.State.Messages = append(existing.State.Messages, m)
			return existing, nil
		})
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if after, err := log.Head(t.Context(), "genkit/s"); err != nil || after != before {
		t.Errorf("head %v, was %v, %v", after, before, err)
	}
	log.Close()
	if _, err := s.GetLatestSnapshot(t.Context(), "s"); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Redacted content is gone from all snapshots, and calls keep their results.
func TestRedaction(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adapter.New[state](log)
	call := ai.NewMessage(ai.RoleModel, nil, ai.NewToolRequestPart(&ai.ToolRequest{Name: "look", Input: "secret"}))
	result := ai.NewMessage(ai.RoleTool, nil, ai.NewToolResponsePart(&ai.ToolResponse{Name: "look", Output: "secret"}))
	save(t, s, "a", "s", 1, user("secret"), call, result, model("done"))
	for e, err := range log.Read(t.Context(), "genkit/s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == event.MessageAdded && e.Seq < 5 {
			if _, err := erase.Redact(t.Context(), log, "genkit/s", []int64{e.Seq}, erase.RedactOptions{Reason: "test"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := get(t, s, "a")
	m := got.State.Messages
	raw, err := json.Marshal(m)
	if err != nil || len(m) != 4 || bytes.Contains(raw, []byte("secret")) || m[1].Content[0].ToolRequest.Ref != m[2].Content[0].ToolResponse.Ref {
		t.Errorf("%s, %v", raw, err)
	}
	next := save(t, s, "b", "s", 2, append(slices.Clone(m), user("more"))...)
	same(t, "after", get(t, s, "b"), next)
}

package secrets_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// token is a made-up token of GitHub. It is in two parts, so that other scanners do not
// report this file.
const token = "gh" + "p_1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"

const masked = "[secret:github-token]"

// places collects the places that a policy reports.
type places struct {
	mu  sync.Mutex
	all []string
}

func (p *places) add(l secrets.Located) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := l.String()
	if l.Unmasked {
		text += " (unmasked)"
	}
	p.all = append(p.all, text)
}

func (p *places) take() []string {
	slices.Sort(p.all)
	all := p.all
	p.all = nil
	return all
}

func openWith(t *testing.T, store eventlog.Store, p secrets.Policy) *eventlog.Log {
	log := eventlog.Open(store, eventlog.Options{Hook: p.Event, BodyHook: p.Body})
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// stored is everything that the store has of a session: its lines, and the given blobs.
func stored(t *testing.T, log *eventlog.Log, session string) string {
	t.Helper()
	var all strings.Builder
	for e, err := range log.Read(t.Context(), session, eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(e.Line())
		for _, d := range e.Blobs() {
			all.WriteString(readBlob(t, log, d))
		}
	}
	return all.String()
}

func readBlob(t *testing.T, log *eventlog.Log, d event.Digest) string {
	t.Helper()
	r, err := log.OpenBlob(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// custom is an event of a type of its own.
func custom(data, metadata string) event.Event {
	return event.Event{ID: event.NewID(), Type: "shop:note", Data: jsontext.Value(data), Metadata: jsontext.Value(metadata)}
}

// everywhere is an event with the token in every place that a policy reads.
func everywhere(t *testing.T) event.Event {
	key := strings.ReplaceAll("-----BEGIN EC PRIVATE"+" KEY-----·"+strings.Repeat("A1b2C3d4", 12)+"·-----END EC PRIVATE"+" KEY-----", "·", `\n`)
	escaped := strings.ReplaceAll(token, "h", `h`)
	e := custom(`{"plain":"use `+token+` now","list":[1,"`+token+`"],"`+token+`":{"n":1.50},"`+token+`x":2,"escaped":"`+escaped+`","key":"`+key+`","password":"s3cret-Pa55"}`,
		`{"note":"`+token+`","n":1e2}`)
	if err := e.SetExtras(jsontext.Value(`{"shop":"` + token + `"}`)); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestMaskEverywhere(t *testing.T) {
	var found places
	log := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Mask: true, Found: found.add})
	e := everywhere(t)
	before := string(e.Data)
	if _, err := log.Append(t.Context(), "s", eventlog.New(), e); err != nil {
		t.Fatal(err)
	}
	if string(e.Data) != before {
		t.Error("the caller's event has changed")
	}
	if text := stored(t, log, "s"); strings.Contains(text, "gh"+"p_") || strings.Contains(text, "s3cret") || strings.Contains(text, "A1b2") {
		t.Errorf("a secret is stored: %s", text)
	}
	got, err := log.Event(t.Context(), "s", 1)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"plain":"use M now","list":[1,"M"],"M":{"n":1.50},"M#2":2,"escaped":"M","key":"[secret:private-key]","password":"[secret:generic-password]"}`
	if diff := cmp.Diff(strings.ReplaceAll(want, "M", masked), string(got.Data)); diff != "" {
		t.Errorf("data: %s", diff)
	}
	if diff := cmp.Diff(`{"note":"`+masked+`","n":1e2,"masked":["github-token","private-key","generic-password"]}`, string(got.Metadata)); diff != "" {
		t.Errorf("metadata: %s", diff)
	}
	if diff := cmp.Diff(`"shop":"`+masked+`"`, string(got.Extras())); diff != "" {
		t.Errorf("extras: %s", diff)
	}
	if diff := cmp.Diff([]string{
		`session "s": (shop:note): data/[secret:github-token]: github-token`,
		`session "s": (shop:note): data/[secret:github-token]: github-token`,
		`session "s": (shop:note): data/escaped: github-token`,
		`session "s": (shop:note): data/key: private-key`,
		`session "s": (shop:note): data/list/1: github-token`,
		`session "s": (shop:note): data/password: generic-password`,
		`session "s": (shop:note): data/plain: github-token`,
		`session "s": (shop:note): extra/shop: github-token`,
		`session "s": (shop:note): metadata/note: github-token`,
	}, found.take()); diff != "" {
		t.Errorf("found: %s", diff)
	}
}

// A retry is the same event, with the same rules, with other rules, and without any.
func TestRetriesOfMaskedEvents(t *testing.T) {
	store := memory.New()
	log := openWith(t, store, secrets.Policy{Scanner: secrets.Default(), Mask: true})
	e := everywhere(t)
	head, err := log.Append(t.Context(), "s", eventlog.New(), e)
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := secrets.New(slices.DeleteFunc(secrets.Rules(), func(r secrets.Rule) bool { return r.Name == "private-key" })...)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]secrets.Policy{"same rules": secrets.Policy{Scanner: secrets.Default(), Mask: true}, "fewer rules": secrets.Policy{Scanner: fewer, Mask: true}, "no rules": {}} {
		log := openWith(t, store, p)
		for _, expect := range []eventlog.Expect{eventlog.Any(), eventlog.New()} {
			if got, err := log.Append(t.Context(), "s", expect, e); err != nil || got != head {
				t.Errorf("%s: %v, %v, want %v", name, got, err, head)
			}
		}
	}
	other := e
	other.Type = "shop:other"
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), other); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("an event of another type with the id: %v", err)
	}
	plain := custom(`{"n":1}`, "")
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), plain); err != nil {
		t.Fatal(err)
	}
	plain.Data = jsontext.Value(`{"n":2}`)
	if _, err := log.Append(t.Context(), "s", eventlog.Any(), plain); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("other content without a secret: %v", err)
	}
}

// An event that was stored before the masks is the same event too.
func TestMaskOfAnEventStoredWithItsSecret(t *testing.T) {
	store := memory.New()
	e := everywhere(t)
	head, err := openWith(t, store, secrets.Policy{}).Append(t.Context(), "s", eventlog.New(), e)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := openWith(t, store, secrets.Policy{Scanner: secrets.Default(), Mask: true}).Append(t.Context(), "s", eventlog.Any(), e); err != nil || got != head {
		t.Errorf("%v, %v, want %v", got, err, head)
	}
}

// Ids that pair calls and results keep their bytes, and are reported.
func TestStructureStays(t *testing.T) {
	var found places
	log := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Mask: true, Found: found.add})
	call := event.ToolCall(token, "track", jsontext.Value(`{"key":"`+token+`"}`))
	_, err := log.Append(t.Context(), "s", eventlog.New(),
		event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text(token), call}}),
		event.ToolOutput(token, "track", []byte("it is "+token), false))
	if err != nil {
		t.Fatal(err)
	}
	text := stored(t, log, "s")
	if n := strings.Count(text, token); n != 2 {
		t.Errorf("the id is stored %d times, want 2: %s", n, text)
	}
	var left int
	for _, place := range found.take() {
		if strings.HasSuffix(place, "/call_id: github-token (unmasked)") {
			left++
		}
	}
	if left != 2 {
		t.Errorf("%d ids are reported as unmasked, want 2", left)
	}
	if n := strings.Count(text, masked); n != 3 {
		t.Errorf("%d masks, want 3: %s", n, text)
	}
}

func TestRefuse(t *testing.T) {
	log := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Refuse: true})
	_, err := log.Append(t.Context(), "s", eventlog.New(), custom(`{"n":1}`, ""), everywhere(t))
	var refused *secrets.FoundError
	if !errors.As(err, &refused) || !errors.Is(err, eventlog.ErrRefused) {
		t.Fatalf("append: %v", err)
	}
	if text := err.Error(); !strings.Contains(text, `data/plain: github-token, and `) || strings.Contains(text, token) {
		t.Errorf("error: %s", text)
	}
	if _, err := log.Head(t.Context(), "s"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("the session after the refusal: %v", err)
	}
	if _, err := log.PutBlob(t.Context(), strings.NewReader("a body with "+token)); !errors.As(err, &refused) || !errors.Is(err, eventlog.ErrRefused) {
		t.Errorf("body: %v", err)
	}
}

func TestWarn(t *testing.T) {
	var found places
	log := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Found: found.add})
	e := everywhere(t)
	if _, err := log.Append(t.Context(), "s", eventlog.New(), e); err != nil {
		t.Fatal(err)
	}
	if got, err := log.Event(t.Context(), "s", 1); err != nil || string(got.Data) != string(e.Data) || got.Masked() {
		t.Errorf("%s, %v", got.Data, err)
	}
	if n := len(found.take()); n != 9 {
		t.Errorf("%d places, want 9", n)
	}
	ref, err := log.PutBlob(t.Context(), strings.NewReader("a body with "+token))
	if err != nil || readBlob(t, log, ref.Blob) != "a body with "+token {
		t.Errorf("body: %v", err)
	}
	if diff := cmp.Diff([]string{"blob: github-token"}, found.take()); diff != "" {
		t.Error(diff)
	}
}

// Large data is screened before it is spilled, and bodies before they are stored.
func TestSpilledDataAndBodies(t *testing.T) {
	for name, store := range map[string]eventlog.Store{"jsonl": jsonl.New(t.TempDir()), "sqlite": sqlite.New(filepath.Join(t.TempDir(), "log.db"))} {
		t.Run(name, func(t *testing.T) {
			log := openWith(t, store, secrets.Policy{Scanner: secrets.Default(), Mask: true})
			filler := strings.Repeat("a long text ", 60_000)
			big := custom(`{"text":"`+filler+token+" "+filler+`"}`, "")
			a, _, err := log.StoreArtifact(t.Context(), "s", eventlog.New(), event.Artifact{ArtifactID: "a", Kind: "file", MediaType: "text/plain"}, strings.NewReader(filler+token+" "+filler))
			if err != nil {
				t.Fatal(err)
			}
			if got := readBlob(t, log, a.Body.Blob); got != filler+masked+" "+filler {
				t.Errorf("the body is masked otherwise: %d bytes", len(got))
			}
			for range 2 {
				if _, err := log.Append(t.Context(), "s", eventlog.Any(), big); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(stored(t, log, "s"), token) {
				t.Error("the token is stored")
			}
			report, err := verify.Session(t.Context(), log, "s")
			if err != nil || len(report.Defects) > 0 {
				t.Errorf("verify: %v, %v", report.Defects, err)
			}
		})
	}
}

// Data that is not JSON is refused by the append, and not by the policy.
func TestInvalidDataIsAnErrorOfTheAppend(t *testing.T) {
	for _, p := range []secrets.Policy{secrets.Policy{Scanner: secrets.Default(), Mask: true}, secrets.Policy{Scanner: secrets.Default(), Refuse: true}} {
		log := openWith(t, memory.New(), p)
		for _, data := range []string{`{"a":"` + token, `{"a":"` + token + "\xff" + `"}`, `{"` + token + `":1,"` + token + `":2}`} {
			_, err := log.Append(t.Context(), "s", eventlog.New(), custom(data, ""))
			if !errors.Is(err, event.ErrInvalidData) {
				t.Errorf("%q: %v", data, err)
			}
		}
	}
}

// Many goroutines may use one policy.
func TestPolicyConcurrently(t *testing.T) {
	var found places
	log := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Mask: true, Found: found.add})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := log.Append(context.Background(), "s", eventlog.Any(), custom(`"`+token+`"`, "")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(found.take()); n != 8 {
		t.Errorf("%d reports, want 8", n)
	}
}

// Snapshots keep their states, so that they fit their digests: the states of a log with
// masks are made of events with masks.
func TestSnapshotsUnderAPolicy(t *testing.T) {
	store := memory.New()
	plain := eventlog.Open(store)
	if _, err := plain.Append(t.Context(), "s", eventlog.New(), event.UserMessage("an old "+token), event.UserMessage(strings.Repeat("long ", 20_000))); err != nil {
		t.Fatal(err)
	}
	log := openWith(t, store, secrets.Policy{Scanner: secrets.Default(), Mask: true})
	live, err := projection.Resume(t.Context(), log, "s", projection.Session())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.Append(t.Context(), event.UserMessage("a new "+token)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := live.Snapshot(t.Context(), projection.Request{Trigger: projection.Manual, Body: true}); err != nil {
		t.Fatal(err)
	}
	report, err := verify.Session(t.Context(), log, "s")
	if err != nil || report.Damaged() > 0 || report.Checked == 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
	view, err := projection.Load(t.Context(), log, "s", projection.History())
	if err != nil || view.Explain.Parts[0].From.Seq != 4 {
		t.Errorf("the snapshot is not used: %+v, %v", view.Explain, err)
	}
}

// Bodies of copies keep their digests, whatever the hook of the log is.
func TestCopiesUnderAPolicy(t *testing.T) {
	from := eventlog.Open(memory.New())
	a, _, err := from.StoreArtifact(t.Context(), "s", eventlog.New(), event.Artifact{ArtifactID: "a", Kind: "file", MediaType: "text/plain"}, strings.NewReader(token))
	if err != nil {
		t.Fatal(err)
	}
	converted := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Mask: true})
	for _, err := range transfer.Convert(t.Context(), converted, from) {
		if err != nil {
			t.Fatal(err)
		}
	}
	copied := openWith(t, memory.New(), secrets.Policy{Scanner: secrets.Default(), Mask: true})
	if _, err := fork.Copy(t.Context(), from, "s", fork.CopyOptions{To: copied}); err != nil {
		t.Fatal(err)
	}
	for _, log := range []*eventlog.Log{converted, copied} {
		if got := readBlob(t, log, a.Body.Blob); got != token {
			t.Errorf("the body has changed: %q", got)
		}
	}
}

package examples

import (
	"context"
	"errors"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/interop/anthropic"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every line of Go in the guide and README.md is a line of a program in this
// folder, or of the example of an adapter. Lines with … and trailing comments do not count.
func TestCodeOfTheGuideIsInAProgram(t *testing.T) {
	programs := map[string]bool{}
	files, err := filepath.Glob("*/*.go")
	check(t, err)
	adapters, err := filepath.Glob("../adapters/*/example_test.go")
	check(t, err)
	for _, file := range append(append(files, adapters...), "guide_test.go", "guide_flow_test.go", "guide_hooks_test.go", "../flow/mcptools/guide_test.go") {
		b, err := os.ReadFile(file)
		check(t, err)
		for line := range strings.Lines(string(b)) {
			programs[code(line)] = true
		}
	}
	for _, page := range append(pagesOfTheGuide(t), "../README.md") {
		b, err := os.ReadFile(page)
		check(t, err)
		inGo, n := false, 0
		for line := range strings.Lines(string(b)) {
			if n++; strings.HasPrefix(line, "```") {
				inGo = strings.HasPrefix(line, "```go")
			} else if inGo && !strings.Contains(line, "…") && !programs[code(line)] {
				t.Errorf("%s:%d is in no program: %s", page, n, line)
			}
		}
	}
}

// code is a line without indentation and without its comment.
func code(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "//") {
		return ""
	}
	line, _, _ = strings.Cut(line, " // ")
	return strings.TrimSpace(line)
}

func pagesOfTheGuide(t *testing.T) []string {
	pages, err := filepath.Glob("../docs/guide/*.md")
	check(t, err)
	if len(pages) == 0 {
		t.Fatal("the guide has no pages")
	}
	return pages
}

// Each program has a section in the guide that links to it.
func TestGuideLinksTheExamples(t *testing.T) {
	var guide strings.Builder
	for _, page := range pagesOfTheGuide(t) {
		b, err := os.ReadFile(page)
		check(t, err)
		guide.Write(b)
	}
	files, err := filepath.Glob("*/*.go")
	check(t, err)
	for _, file := range files {
		if link := "](../../examples/" + filepath.Dir(file); !strings.Contains(guide.String(), link) {
			t.Errorf("docs/guide has no link %s", link)
		}
	}
}

// The policy and the view of the guide.
func TestGuideKeepsSecretsOut(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	token := "gh" + "p_" + "1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX"
	before := eventlog.Open(jsonl.New(dir))
	_, err := before.Append(ctx, "s", eventlog.New(), event.UserMessage("stored before: "+token))
	check(t, err)
	check(t, before.Close())
	policy := secrets.Policy{Scanner: secrets.Default(), Mask: true}
	l := eventlog.Open(jsonl.New(dir), eventlog.Options{Hook: policy.Event, BodyHook: policy.Body})
	defer l.Close()
	_, err = l.Append(ctx, "s", eventlog.Any(), event.UserMessage("masked: "+token))
	check(t, err)
	shown := eventlog.Open(secrets.View(jsonl.New(dir, jsonl.Options{ReadOnly: true}), secrets.Default()))
	defer shown.Close()
	for e, err := range shown.Read(ctx, "s", eventlog.All()) {
		check(t, err)
		if strings.Contains(string(e.Data), token) {
			t.Errorf("the view shows a secret in event %d", e.Seq)
		}
	}
	var seqs []int64
	for found, err := range secrets.Scan(ctx, l, secrets.Default()) {
		check(t, err)
		seqs = append(seqs, found.Seq)
	}
	if len(seqs) != 1 || seqs[0] != 1 {
		t.Errorf("secrets in the events %v, want 1", seqs)
	}
}

// The append of the guide.
func TestGuideAppends(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := eventlog.Open(jsonl.New(dir, jsonl.Options{LockTimeout: 30 * time.Second}))
	defer l.Close()
	question := event.UserMessage("Where is my parcel?")
	head, err := l.Append(ctx, "order-42", eventlog.New(), question)
	check(t, err)
	retried, err := l.Append(ctx, "order-42", eventlog.New(), question)
	check(t, err)
	if retried != head {
		t.Error("the retry stored the event again")
	}
	_, err = l.Append(ctx, "order-42", eventlog.Any().Durable(), event.UserMessage("Hello?"))
	check(t, err)
	_, err = l.Append(ctx, "order-42", eventlog.At(head), event.AssistantMessage("In Leipzig."))
	if !errors.Is(err, eventlog.ErrConflict) {
		t.Error(err)
	}
	head, err = l.Head(ctx, "order-42")
	check(t, err)
	call := event.ToolCall("call-1", "track", jsontext.Value(`{"parcel":"A1"}`))
	_, err = l.Append(ctx, "order-42", eventlog.At(head),
		event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("I look it up."), call}}),
		event.ToolOutput("call-1", "track", []byte("in Leipzig"), false))
	check(t, err)
	for e, err := range l.Read(ctx, "order-42", eventlog.Last(20).Backward()) {
		check(t, err)
		m, ok, err := event.Decode[event.Message](&e)
		check(t, err)
		if !ok || m.Role == "" {
			t.Error(e.Type)
		}
	}
}

// A tool that must not run twice leaves an intent, and a state of the program's own
// is set, changed and read.
func TestGuideStates(t *testing.T) {
	ctx := t.Context()
	l := eventlog.Open(sqlite.New(filepath.Join(t.TempDir(), "s.db")))
	defer l.Close()
	call := event.ToolCall("call-1", "pay", jsontext.Value(`{"cents":100}`))
	_, err := l.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Pay."),
		event.New(event.Message{Role: event.Assistant, Parts: []event.Part{call}}))
	check(t, err)
	live, err := projection.Resume(ctx, l, "order-42", projection.Session())
	check(t, err)
	intent := event.EffectIntent{Key: call.CallID, Name: call.Name, Class: event.EffectUnsafeOnce}
	_, err = live.Append(ctx, event.New(intent))
	check(t, err)
	pending, err := projection.PendingOf(ctx, l, live)
	check(t, err)
	if pending.Calls[0].Intended == nil {
		t.Error("the intent is not pending")
	}
	done := event.EffectCompletion{Key: call.CallID, Result: jsontext.Value(`"paid"`)}
	_, err = live.Append(ctx, event.New(done), event.ToolOutput(call.CallID, call.Name, []byte("paid"), false))
	check(t, err)

	_, _, err = projection.SetState(ctx, l, "order-42", "cart", 1, Cart{Items: 2})
	check(t, err)
	patch := jsontext.Value(`[{"op":"replace","path":"/items","value":3}]`)
	_, _, err = projection.Patch(ctx, l, "order-42", event.CustomPatch{Name: "cart", StateVersion: 1, Patch: patch})
	check(t, err)
	custom, err := projection.Load(ctx, l, "order-42", projection.Custom())
	check(t, err)
	cart, err := projection.Typed[Cart](custom.State.Get("cart"), 1, nil)
	check(t, err)
	if cart.Items != 3 {
		t.Error(cart)
	}
}

type Cart struct {
	Items int `json:"items"`
}

// A body outside of the event, and an artifact.
func TestGuideBodies(t *testing.T) {
	ctx := t.Context()
	l := eventlog.Open(jsonl.New(t.TempDir()))
	defer l.Close()
	picture, report := strings.NewReader("…"), strings.NewReader("# Parcels")
	var ref event.BlobRef
	err := l.Hold(ctx, func(ctx context.Context) (err error) {
		ref, err = l.PutBlob(ctx, picture)
		if err != nil {
			return err
		}
		image := event.Image("image/png", ref)
		_, err = l.Append(ctx, "order-42", eventlog.Any(), event.New(event.Message{Role: event.User, Parts: []event.Part{image}}))
		return err
	})
	check(t, err)
	artifact, _, err := l.StoreArtifact(ctx, "order-42", eventlog.Any(), event.Artifact{ArtifactID: "report-1", Name: "report.md"}, report)
	check(t, err)
	body, err := l.OpenArtifact(ctx, artifact)
	check(t, err)
	check(t, body.Close())
}

// The library example of README.md.
func TestReadme(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx := t.Context()
	l := eventlog.Open(jsonl.New("logs"))
	defer l.Close()
	head, err := l.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Where is my parcel?"))
	check(t, err)
	answer := event.AssistantMessage("In Leipzig.")
	_, err = l.Append(ctx, "order-42", eventlog.At(head), answer)
	check(t, err)
	_, err = l.Append(ctx, "order-42", eventlog.At(head), answer)
	check(t, err)
	for e, err := range l.Read(ctx, "order-42", eventlog.Last(20)) {
		check(t, err)
		t.Log(e.Seq, e.Type)
	}
	child, err := fork.At(ctx, l, "order-42", fork.AtTurn(0), fork.Options{Label: "retry"})
	check(t, err)
	view, err := projection.Load(ctx, l, child.ID, projection.History())
	check(t, err)
	messages, err := view.State.Messages()
	check(t, err)
	request, err := anthropic.Messages(messages)
	check(t, err)
	t.Logf("%s", request)
}

func TestGuideSinks(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	l := eventlog.Open(jsonl.New(filepath.Join(dir, "log")))
	defer l.Close()
	said := event.AssistantMessage("It is in Leipzig.")
	said.Cost = 2_000_000
	_, err := l.Append(ctx, "order-42", eventlog.New(), event.UserMessage("Where is my parcel?"), said)
	check(t, err)

	ledger, err := sink.OpenLedger(ctx, filepath.Join(dir, "accounting.jsonl"))
	check(t, err)
	defer ledger.Close()
	sinks := &sink.Sinks{
		Folder: sink.OpTreeFolder(filepath.Join(dir, "optrees")),
		Ledger: ledger,
		Warn:   func(w *sink.Error) { log.Println(w) },
	}
	func() {
		run := sinks.Run(l, "order-42", "")
		defer run.Finish(ctx)
	}()
	tree, err := sinks.Folder.Read("order-42")
	check(t, err)
	if own := tree.Snapshot.OpTree.Totals.Own; tree.Reason != "final" || own.Cost != said.Cost {
		t.Errorf("op tree %s, %v", tree.Reason, own)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "accounting.jsonl"))
	check(t, err)
	if !strings.HasPrefix(string(lines), `{"session_id":"order-42","seq":2,`) {
		t.Errorf("ledger %s", lines)
	}
}

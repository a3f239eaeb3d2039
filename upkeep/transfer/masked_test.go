package transfer_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// hiding is a view that shows [x] for each of the texts.
func hiding(t garden.Failer, log *eventlog.Log, texts ...string) *eventlog.Log {
	var rules []secrets.Rule
	for i, text := range texts {
		rules = append(rules, secrets.Rule{Name: fmt.Sprint("text-", i), Mask: "[x]", Keywords: []string{strings.ToLower(text)}, Pattern: `\b` + text + `\b`})
	}
	scanner, err := secrets.New(rules...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return eventlog.Open(secrets.View(log.Store(), scanner))
}

// A masked tree of random sessions has the same form under new ids: it verifies, has the same
// types at the same seqs, costs the same, and is imported again without a new event.
func TestMaskedTreesTravel(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		addChildren(r, l)
		var stream bytes.Buffer
		ids, _, err := transfer.ExportMasked(garden.Bg, l.Log, hiding(r, l.Log, "so", "word"), &stream, l.Names...)
		l.Allow(err)
		dst := eventlog.Open(memory.New())
		defer func() { _ = dst.Close() }()
		for i := range 2 {
			results, err := transfer.Import(garden.Bg, dst, bytes.NewReader(stream.Bytes()))
			l.Allow(err)
			for _, s := range results {
				if i == 1 {
					garden.Same(r, "stored again of "+s.Session, int64(0), s.Stored)
				}
			}
		}
		for name, id := range ids {
			report, err := verify.Session(garden.Bg, dst, id)
			l.Allow(err)
			garden.Same(r, "defects of "+name, "[]", fmt.Sprint(report.Defects))
			garden.Same(r, "types of "+name, typesOf(l, l.Log, name), typesOf(l, dst, id))
			want, err := stats.LoadTreeCost(garden.Bg, l.Log, name)
			l.Allow(err)
			got, err := stats.LoadTreeCost(garden.Bg, dst, id)
			l.Allow(err)
			garden.Same(r, "cost of the tree of "+name, want.Total, got.Total)
			garden.Same(r, "sessions of the tree of "+name, len(want.Sessions), len(got.Sessions))
		}
	})
}

// typesOf are the seqs and the types of a session. A snapshot is a lost event in a masked stream.
func typesOf(l *garden.Life, log *eventlog.Log, session string) (rows []string) {
	for e, err := range log.Read(garden.Bg, session, eventlog.All()) {
		l.Allow(err)
		kind := e.Type
		if kind == event.ProjectionSnapshotted && !e.Redacted() {
			kind = event.Lost
		}
		rows = append(rows, fmt.Sprint(e.Seq, kind, e.Redacted(), e.More(), e.Cost))
	}
	return rows
}

const hidden = "hunter2"

// No text of a masked tree has a masked word: not in titles, arguments, results, raw records, names of
// states, spilled data, bodies, child runs, forks, copies and metadata. Nor has it a digest of
// content, or a salt of the store.
func TestMaskedTreeHidesEverywhere(t *testing.T) {
	log := eventlog.Open(memory.New(), eventlog.Options{SpillOver: 3000})
	defer log.Close()
	g := &garden.Garden{T: t, Log: log}
	body, err := log.PutBlob(t.Context(), strings.NewReader("the password is "+hidden+", and no other"))
	g.Allow(err)
	picture, err := log.PutBlob(t.Context(), bytes.NewReader([]byte{0, 1, 2, 255}))
	g.Allow(err)
	arguments := jsontext.Value(`{"` + hidden + `":["-p","` + hidden + `"]}`)
	label := hidden
	start := event.New(event.Session{Title: hidden, CWD: "/" + hidden, Labels: map[string]*string{hidden: &label}})
	g.Allow(start.SetMetadata("origin", map[string]any{"source": "/" + hidden + "/a.jsonl", "line": 1, "bytes": 9, "digest": event.DigestOf([]byte(hidden)), "key": event.DigestOf([]byte(hidden))}))
	g.Allow(start.SetMetadata(hidden, hidden))
	raw := event.Event{ID: event.NewID(), Type: "other:thing", Data: jsontext.Value(`{"text":"` + hidden + `","file":{"blob":"` + string(body.Blob) + `","bytes":` + fmt.Sprint(body.Bytes) + `}}`)}
	g.Allow(raw.AddBlobs(body.Blob))
	g.Allow(raw.SetExtras(jsontext.Value(`{"extra_member":"` + hidden + `"}`)))
	g.Append("a", start, raw)
	g.Append("a", event.New(event.Message{Role: event.User, Parts: []event.Part{
		event.Text(strings.Repeat("long ", 1000) + hidden), {Type: event.DocumentPart, Name: hidden, MediaType: "text/plain", Blob: body},
		{Type: event.ImagePart, MediaType: "image/png", Blob: picture},
	}}))
	g.Append("a", event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c-"+hidden, "t", arguments)}}))
	g.Append("a", event.New(event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c-"+hidden, "t", event.Text(hidden))}}))
	g.Append("a", event.New(event.EffectIntent{Key: "k", Class: event.EffectPure, Nonce: strings.Repeat("0", 32), Arguments: arguments, ArgumentsDigest: event.DigestOf(arguments)}))
	g.Append("a", event.New(event.Artifact{ArtifactID: "1", Name: hidden, Body: body}), event.UserMessage("erase me: "+hidden))
	g.Snapshot("a", projection.Session(), true)
	g.Append("a", childOf("a."+hidden))
	g.Append("a."+hidden, event.New(event.Session{Title: hidden, Parent: event.SessionParent{SessionID: "a"}}), event.UserMessage(hidden))
	_, err = fork.At(t.Context(), log, "a", fork.Head(), fork.Options{ID: "f", Label: hidden, Reason: hidden, Force: true})
	g.Allow(err)
	_, err = erase.Redact(t.Context(), log, "a", []int64{8})
	g.Allow(err)
	_, err = fork.Copy(t.Context(), log, "a", fork.CopyOptions{ID: "c"})
	g.Allow(err)

	var stream bytes.Buffer
	ids, missing, err := transfer.ExportMasked(t.Context(), log, hiding(t, log, hidden), &stream, "a")
	if err != nil || len(missing) > 0 || len(ids) != 4 {
		t.Fatalf("%v, missing %v, %v", ids, missing, err)
	}
	text := stream.String()
	for rest := range strings.Lines(text) { // the bodies
		var l struct {
			Base64 string `json:"base64"`
		}
		if json.Unmarshal([]byte(rest), &l) == nil && l.Base64 != "" {
			body, err := base64.StdEncoding.DecodeString(l.Base64)
			g.Allow(err)
			text += string(body)
		}
	}
	// A name of the store may be the id of a session: it is in masked_from.
	if i := strings.Index(strings.ReplaceAll(text, `"masked_from":{"session_id":"a.`+hidden, ""), hidden); i >= 0 {
		t.Errorf("the stream has the word: …%s…", text[max(0, i-300):i+20])
	}
	if !strings.Contains(text, "the password is [x], and no other") {
		t.Error("the stream has no masked body")
	}
	for stored := range ids {
		for e, err := range log.Read(t.Context(), stored, eventlog.All().Own()) {
			g.Allow(err)
			var l struct {
				Salt string `json:"salt"`
			}
			g.Allow(json.Unmarshal(e.Line(), &l))
			if l.Salt != "" && strings.Contains(text, l.Salt) {
				t.Errorf("the stream has the salt of event %d of %s", e.Seq, stored)
			}
		}
	}
	for _, d := range []event.Digest{event.DigestOf([]byte(hidden)), event.DigestOf(arguments), body.Blob} {
		if strings.Contains(text, string(d)) {
			t.Errorf("the stream has the digest %s", d)
		}
	}
	dst := eventlog.Open(memory.New())
	defer dst.Close()
	if _, err := transfer.Import(t.Context(), dst, &stream); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if report, err := verify.Session(t.Context(), dst, id); err != nil || report.Damaged() > 0 {
			t.Errorf("%s: %v, %v", id, report.Defects, err)
		}
	}
	first, err := dst.Event(t.Context(), ids["a"], 1)
	g.Allow(err)
	var from struct {
		Session string     `json:"session_id"`
		Seq     int64      `json:"seq"`
		Hash    event.Hash `json:"hash"`
	}
	value, _ := first.MetadataValue("masked_from")
	if err := json.Unmarshal(value, &from); err != nil || from.Session != "a" || (event.Head{Seq: from.Seq, Hash: from.Hash}) != g.Head("a") {
		t.Errorf("masked_from is %s, %v", value, err)
	}
	forest, err := fork.Tree(t.Context(), dst)
	g.Allow(err)
	for _, n := range forest.Roots {
		if n.ID != ids["a"] && n.ID != storenotes.Session {
			t.Errorf("%s has no parent", n.ID)
		}
	}
}

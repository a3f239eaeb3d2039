package html_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"flag"
	markup "html"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage/htmltest"
	"github.com/convlog/convlog/interop/html"
	"github.com/convlog/convlog/interop/internal/importtest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

var update = flag.Bool("update", false, "write the golden page anew")

// write returns the page of a session and checks its markup.
func write(t testing.TB, log *eventlog.Log, session string, events ...eventlog.Range) string {
	t.Helper()
	selected := eventlog.All().OnPath()
	if len(events) > 0 {
		selected = events[0]
	}
	var page bytes.Buffer
	if err := html.Write(t.Context(), &page, log, session, selected, nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := htmltest.CheckAlone(page.String()); err != nil {
		t.Fatalf("page: %v\n%s", err, page.String())
	}
	return page.String()
}

func user(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"

// talk fills a session with every kind of entry.
func talk(t testing.TB, log *eventlog.Log) {
	image, err := log.PutBlob(t.Context(), strings.NewReader(pixel))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("a line\n", 40)
	failed := event.ToolResult("c2", "look", event.Text("no such file"))
	failed.IsError = true
	importtest.Say(t, log, "talk",
		event.Session{Title: "Pixels & <b>boxes</b>", Agent: "painter", CWD: "/srv/art"},
		event.Message{Role: event.System, Parts: []event.Part{event.Text("Be brief." + strings.Repeat("\nAnd kind.", 14))}},
		event.Message{Role: event.User, Parts: []event.Part{event.Text("What is this?"), event.Image("image/png", image),
			{Type: event.ImagePart, URL: "https://example.org/a.png"}, {Type: event.ImagePart, URL: "javascript:alert(1)"}}},
		event.Message{Role: event.Assistant, Model: "m-1", Usage: event.Usage{InputTokens: 1200, OutputTokens: 30}, StopReason: "tool_use", Parts: []event.Part{
			event.Reasoning("Two looks.", "c2ln"), event.Text("I look:\n```sh\nls -l </pre>\n```\nso"),
			event.ToolCall("c1", "look", []byte(`{"at":1,"how":"closely"}`)), event.ToolCall("c2", "look", []byte(`{"path":"a.txt","script":"one\ntwo"}`)), event.ToolCall("c3", "look", nil)}},
		event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c1", "look", event.Text(long))}},
		event.Message{Role: event.Tool, Parts: []event.Part{failed}},
		event.Compaction{Covers: event.Stretch{From: 2, To: 6}, Summary: "They looked.", TokensBefore: 1200},
		event.Message{Role: event.Assistant, StopReason: "max_tokens", Parts: []event.Part{event.Text("One pixel.")}},
		user("Sure?"), event.Message{Role: event.Assistant, Parts: []event.Part{{Type: event.ReasoningPart, Encrypted: "eHl6"}, event.Text("No.")}},
		event.HeadMove{To: 8, Reason: "doubt"}, user("And now?"), event.Handoff{ToAgent: "critic"}, event.TurnCompletion{Status: event.TurnStatusFailed, Error: "no model"})
}

// The golden page has every kind of entry. It was reviewed in a browser.
func TestGoldenPage(t *testing.T) {
	log := importtest.NewLog(t)
	talk(t, log)
	page := write(t, log, "talk", eventlog.All())
	_, page, _ = strings.Cut(page, "<body>\n") // without the style
	golden := filepath.Join("testdata", "talk.html")
	if *update {
		if err := os.WriteFile(golden, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), page); diff != "" {
		t.Errorf("page (+):\n%s", diff)
	}
	if strings.Contains(write(t, log, "talk"), "Sure?") {
		t.Error("the page of the active path has rewound events")
	}
}

// Every store gives the same page.
func TestAllStoresGiveTheSamePage(t *testing.T) {
	stores := map[string]eventlog.Store{"jsonl": jsonl.New(t.TempDir()), "sqlite": sqlite.New(filepath.Join(t.TempDir(), "s.db"))}
	memory := importtest.NewLog(t)
	talk(t, memory)
	want := write(t, memory, "talk")
	for name, store := range stores {
		log := eventlog.Open(store)
		defer log.Close()
		talk(t, log)
		if diff := cmp.Diff(want, write(t, log, "talk")); diff != "" {
			t.Errorf("%s (+):\n%s", name, diff)
		}
	}
}

// The page has the security policy, and no content that the policy would block.
func TestPageIsSelfContained(t *testing.T) {
	log := importtest.NewLog(t)
	talk(t, log)
	page := write(t, log, "talk")
	if !strings.Contains(page, `content="default-src 'none'; style-src 'sha256-`) {
		t.Error("no policy")
	}
	for _, bad := range []string{"<script", "<link", "<iframe", " onerror=", "javascript:alert(1)\"", "src=\"http", "@import", "url("} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page", bad)
		}
	}
	if !strings.Contains(page, `src="data:image/png;base64,iVBOR`) {
		t.Error("the image is not in the page")
	}
	_, style, _ := strings.Cut(page, "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	sum := sha256.Sum256([]byte(style))
	if digest := base64.StdEncoding.EncodeToString(sum[:]); !strings.Contains(markup.UnescapeString(page), "'sha256-"+digest+"'") {
		t.Errorf("the policy does not allow the style, whose digest is %s", digest)
	}
}

// Sounds and the texts of documents are in the page. A body of another type is named.
func TestBodies(t *testing.T) {
	log := importtest.NewLog(t)
	importtest.Say(t, log, "s", event.Message{Role: event.User, Parts: []event.Part{
		{Type: event.AudioPart, MediaType: "audio/wav", Data: []byte("RIFF")},
		{Type: event.DocumentPart, MediaType: "text/plain; charset=utf-8", Name: "a.txt", Data: []byte("of a & b")},
		{Type: event.DocumentPart, URL: "data:text/csv,c%2Cd"},
		{Type: event.DocumentPart, MediaType: "application/pdf", Name: "e.pdf", Data: []byte("%PDF-1.4")},
		{Type: event.ImagePart, MediaType: "image/svg+xml", Name: "f.svg", Data: []byte("<svg/>")},
	}})
	page := write(t, log, "s")
	for _, want := range []string{`<audio controls src="data:audio/wav;base64,UklGRg=="></audio>`, "of a &amp; b", "c,d", "e.pdf", "f.svg"} {
		if !strings.Contains(page, want) {
			t.Errorf("%s is not in the page:\n%s", want, page)
		}
	}
	for _, bad := range []string{"PDF-1", "svg+xml;base64", "<svg"} {
		if strings.Contains(page, bad) {
			t.Errorf("%s is in the page", bad)
		}
	}
}

// The page says that a body is missing, and has the rest of the session.
func TestMissingBody(t *testing.T) {
	log := importtest.NewLog(t)
	image, err := log.PutBlob(t.Context(), strings.NewReader(pixel))
	if err != nil {
		t.Fatal(err)
	}
	importtest.Say(t, log, "s", event.Message{Role: event.User, Parts: []event.Part{event.Image("image/png", image)}}, user("What was it?"))
	blobs, ok := eventlog.As[eventlog.Blobs](log.Store())
	if !ok {
		t.Fatal("the store keeps no blobs")
	}
	if err := blobs.RemoveBlobs(t.Context(), []event.Digest{image.Blob}); err != nil {
		t.Fatal(err)
	}
	page := write(t, log, "s")
	if !strings.Contains(page, "the body is missing") || !strings.Contains(page, "What was it?") {
		t.Errorf("page:\n%s", page)
	}
}

func TestErrors(t *testing.T) {
	log := importtest.NewLog(t)
	if err := html.Write(t.Context(), &bytes.Buffer{}, log, "nobody", eventlog.All().OnPath(), nil, nil); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("a missing session: %v", err)
	}
	talk(t, log)
	if err := html.Write(t.Context(), fullDisk{}, log, "talk", eventlog.All().OnPath(), nil, nil); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
}

func TestNilArguments(t *testing.T) {
	if err := html.Write(t.Context(), nil, importtest.NewLog(t), "talk", eventlog.All().OnPath(), nil, nil); err == nil || !strings.Contains(err.Error(), "writer is nil") {
		t.Errorf("nil writer: %v", err)
	}
	if err := html.Write(t.Context(), &bytes.Buffer{}, nil, "talk", eventlog.All().OnPath(), nil, nil); err == nil || !strings.Contains(err.Error(), "log is nil") {
		t.Errorf("nil log: %v", err)
	}
}

var errFull = errors.New("full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// Text of a session never becomes markup, in any place of the page.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{"", "</pre></details><script>alert(1)</script>", "\"' onload=x", "```\n</section>", "~~~x\n````\n", "\x00\x1b[31m\r\n\x80\xff", "&lt;&#60;", "data:text/html,<b>", "\u202e"} {
		f.Add(s, strings.Repeat(s, 30))
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "\ufffd"), strings.ToValidUTF8(b, "\ufffd")
		log := importtest.NewLog(t)
		document := event.Part{Type: event.DocumentPart, Name: a, MediaType: "text/plain", Data: []byte(b + "x")}
		call, again := event.ToolCall("c"+a, "n"+b, nil), event.ToolCall("d"+a, "n"+a, nil)
		call.Arguments, _ = jsonObject(a, b)
		answer := event.ToolResult(call.CallID, "n", event.Text(b), document)
		answer.IsError = true
		importtest.Say(t, log, "s", event.Session{Title: a, Agent: b, CWD: a, Labels: map[string]*string{a: &b}, Source: event.SessionSource{Format: a, Path: b}},
			user(a), event.Message{Role: event.Assistant, Model: a, StopReason: b, Parts: []event.Part{
				event.Reasoning(b, ""), event.Text(b), call, again, event.Opaque("k"+a, []byte(`{}`))}},
			event.Message{Role: event.Tool, Parts: []event.Part{answer}},
			event.Message{Role: event.User, Parts: []event.Part{{Type: event.ImagePart, URL: "http://x/" + a}, {Type: event.ImagePart, URL: "x" + b}, document}},
			event.Compaction{Summary: b, Strategy: a}, event.Handoff{ToAgent: "n" + a, Reason: b}, event.External{Source: a, Kind: b},
			event.TurnCompletion{Status: event.TurnStatusFailed, Error: b, StopReason: a})
		write(t, log, "s", eventlog.All())
	})
}

// jsonObject returns an object with one member.
func jsonObject(name, text string) (jsontext.Value, error) {
	return json.Marshal(map[string]string{name: text})
}

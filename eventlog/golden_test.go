//go:build !js

package eventlog_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash/crc32"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/mint"
	"github.com/convlog/convlog/internal/testkit"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// update writes the golden logs and the worked example of docs/FORMAT.md anew.
// It is for the time before version 1 is released; golden logs of a released
// format stay as they are, and TestGoldensAreWhatIsWritten goes.
var update = flag.Bool("update", false, "write testdata/golden and the worked example anew")

const goldens = "../testdata/golden"

func TestGoldensAreWhatIsWritten(t *testing.T) {
	dir := t.TempDir()
	writeGoldens(t, dir)
	for _, name := range []string{".lock", "convlog%3astore.jsonl"} { // the notes of erasures have a random salt
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.RemoveAll(goldens); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(goldens, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(testkit.FilesOf(t, goldens), testkit.FilesOf(t, dir)); diff != "" {
		t.Errorf("what is written differs from %s (-golden +written):\n%s", goldens, diff)
	}
}

// goldenLog is a log with the same clock, ids and salts in every run.
type goldenLog struct {
	*eventlog.Log
	*testing.T
	mint *mint.Minter
}

func (g *goldenLog) open(t *testing.T, dir string, seed byte) {
	source := rand.NewChaCha8([32]byte{seed})
	now := time.Date(2026, 11, 20, 19, 5, 0, 0, time.UTC)
	clock := func() time.Time {
		now = now.Add(1_250_000_001)
		return now
	}
	g.T, g.mint = t, &mint.Minter{Now: clock, Random: source}
	g.Log = eventlog.Open(jsonl.New(dir), eventlog.Options{Now: clock, Random: source, SpillOver: 600})
}

func (g *goldenLog) event(p event.Payload, edits ...func(*event.Event)) event.Event {
	g.Helper()
	e := event.New(p)
	e.ID = g.mint.NewID()
	for _, edit := range edits {
		edit(&e)
	}
	return e
}

func (g *goldenLog) append(session string, events ...event.Event) event.Head {
	g.Helper()
	h, err := g.Append(g.Context(), session, eventlog.Any().Lenient(), events...) // types of any form
	if err != nil {
		g.Fatal(err)
	}
	return h
}

func (g *goldenLog) say(session, text string) { g.append(session, g.event(said(text))) }

func (g *goldenLog) close() {
	g.Helper()
	if err := g.Close(); err != nil {
		g.Fatal(err)
	}
}

func said(text string) event.Message {
	return event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}}
}

func metadata(text string) func(*event.Event) {
	return func(e *event.Event) { e.Metadata = jsontext.Value(text) }
}

func cost(c event.Cost) func(*event.Event) { return func(e *event.Event) { e.Cost = c } }

// writeGoldens writes every golden log, each with a seed of its own, so that a
// new one changes none of the others.
func writeGoldens(t *testing.T, dir string) {
	var g goldenLog
	for i, write := range []func(*goldenLog, string){
		writeBasic, writeBatch, writeCut, writeTorn, writeSpilled, writeRedacted, writeForks, writeUnknown, writeNames, writeNumbers, writeBodies,
	} {
		g.open(t, dir, byte(i+1))
		write(&g, dir)
		g.close()
	}
}

// writeBasic writes one turn with a tool, metadata and costs.
func writeBasic(g *goldenLog, _ string) {
	const session, model = "basic", "sample-large"
	g.append(session, g.event(event.Session{Title: "Refund of A1001", Agent: "support"}, metadata(`{"source":"golden","tags":["a","b"]}`)))
	g.append(session, g.event(said("Please refund order A1001.")))
	turn := g.event(event.TurnStart{Agent: "support"})
	g.append(session, turn)
	g.append(session, g.event(event.Message{Role: event.Assistant, Provider: "sample", Model: model, StopReason: "tool_use",
		Usage: event.Usage{InputTokens: 812, OutputTokens: 64, CacheReadTokens: 512},
		Parts: []event.Part{
			event.Reasoning("The order must be looked up first.", "c2lnbmVk"),
			event.Text("Let me look."),
			event.ToolCall("call_1", "order", jsontext.Value(`{"id":"A1001"}`)),
		}}, cost(12_300_000)))
	g.append(session, g.event(event.ToolStart{CallID: "call_1", Name: "order", Arguments: jsontext.Value(`{"id":"A1001"}`)}))
	g.append(session, g.event(event.ToolCompletion{CallID: "call_1", Name: "order", DurationMS: 41,
		Content: []event.Part{event.Text("paid: 19.90")}}, cost(1)))
	g.append(session, g.event(event.Message{Role: event.Tool,
		Parts: []event.Part{event.ToolResult("call_1", "order", event.Text("paid: 19.90"))}}))
	g.append(session, g.event(event.Message{Role: event.Assistant, Provider: "sample", Model: model, StopReason: "end_turn",
		Parts: []event.Part{event.Text("Order A1001 is refunded: 19.90.")}}, cost(2*event.Dollar)))
	g.append(session, g.event(event.TurnCompletion{TurnID: turn.ID, Status: event.TurnStatusCompleted, Steps: 2}))
}

// writeBatch writes appends of several events, which count down in more.
func writeBatch(g *goldenLog, _ string) {
	const session = "batch"
	var events []event.Event
	for i := range 4 {
		events = append(events, g.event(said(fmt.Sprintf("together %d", i))))
	}
	g.append(session, events...)
	g.say(session, "alone")
	g.append(session, g.event(said("one of two")), g.event(said("two of two")))
}

// writeCut writes after a torn tail: the next event names the cut.
func writeCut(g *goldenLog, dir string) {
	const session = "cut"
	g.say(session, "before the power failed")
	g.close()
	testkit.Tear(g.T, filepath.Join(dir, session+".jsonl"), `{"crc":"0badc0de","v":1,"seq":2,"id":"01K`)
	g.open(g.T, dir, 103)
	g.say(session, "after the power came back")
	g.say(session, "and later")
}

// writeTorn leaves two lines of an append of three at the end of the file.
func writeTorn(g *goldenLog, dir string) {
	const session = "torn"
	g.say(session, "this stands")
	path := filepath.Join(dir, session+".jsonl")
	whole := testkit.ReadFile(g.T, path)
	g.append(session, g.event(said("never")), g.event(said("happened")), g.event(said("at all")))
	lines := strings.SplitAfter(testkit.ReadFile(g.T, path)[len(whole):], "\n")
	testkit.WriteFile(g.T, path, whole+lines[0]+lines[1])
}

// writeSpilled writes data over the threshold, twice the same, and an image.
func writeSpilled(g *goldenLog, _ string) {
	const session = "spilled"
	g.say(session, strings.Repeat("long ", 200))
	g.say(session, strings.Repeat("long ", 200))
	image, err := g.PutBlob(g.Context(), strings.NewReader("not really a picture"))
	if err != nil {
		g.Fatal(err)
	}
	g.append(session, g.event(event.Message{Role: event.User,
		Parts: []event.Part{event.Text("look"), event.Image("image/png", image)}}))
	g.append(session, g.event(event.Message{Role: event.User,
		Parts: []event.Part{event.Text(strings.Repeat("look again ", 100)), event.Image("image/png", image)}}))
}

// writeRedacted erases a message with metadata, and one that was spilled.
func writeRedacted(g *goldenLog, _ string) {
	const session = "redacted"
	g.say(session, "harmless")
	g.append(session, g.event(said("my card is 4111"), metadata(`{"ip":"192.0.2.7"}`), cost(5)))
	g.say(session, strings.Repeat("secret ", 200))
	g.say(session, "harmless too")
	if _, err := erase.Redact(g.Context(), g.Log, session, []int64{2, 3}, erase.RedactOptions{Reason: "card number"}); err != nil {
		g.Fatal(err)
	}
	g.say(session, "life goes on")
}

// writeBodies writes the bodies of two calls, and erases the bodies of the first.
func writeBodies(g *goldenLog, _ string) {
	const session = "bodies"
	for call := range 2 {
		g.append(session, g.event(event.StepStart{Step: call, Model: "sample-large"}))
		var events []event.Event
		for _, op := range []event.Op{{Kind: "raw_request", Text: `{"model":"sample-large"}`}, {Kind: "raw_response", Text: "data: [DONE]\n\n"}} {
			body, err := g.PutBlob(g.Context(), strings.NewReader(fmt.Sprint(call, op.Text)))
			if err != nil {
				g.Fatal(err)
			}
			events = append(events, g.event(event.Op{OpID: fmt.Sprint("call-", call), Kind: op.Kind, Body: body}))
		}
		g.append(session, append(events, g.event(event.StepCompletion{Step: call, Model: "sample-large", Usage: event.Usage{OutputTokens: 7}}))...)
	}
	if _, err := erase.Redact(g.Context(), g.Log, session, []int64{2, 3}, erase.RedactOptions{Reason: "older than 30 days"}); err != nil {
		g.Fatal(err)
	}
}

// writeForks writes a parent, a fork of it, and a fork of that one at a point
// that only the first holds.
func writeForks(g *goldenLog, _ string) {
	for i := range 4 {
		g.say("parent", fmt.Sprintf("step %d", i+1))
	}
	g.fork("parent", 3, "child")
	g.say("child", "another way")
	g.fork("child", 2, "grandchild")
	g.say("grandchild", "from further back")
	g.fork("child", 5, "sibling")
}

func (g *goldenLog) fork(parent string, seq int64, child string) {
	g.Helper()
	at, err := g.Event(g.Context(), parent, seq)
	if err != nil {
		g.Fatal(err)
	}
	g.append(child, g.event(event.Fork{Parent: parent, Seq: seq, EventID: at.ID, Hash: at.Hash(), Label: "try " + child}))
}

// writeUnknown adopts unknown types, payload versions and envelope members.
func writeUnknown(g *goldenLog, _ string) {
	var prev [sha256.Size]byte
	var lines []event.Event
	for i, member := range []struct{ typ, meta, data string }{
		{"acme/order_placed", ``, `{"order":"A1001","lines":[1,2.50,null,true]}`},
		{"acme/order_placed/2", `"metadata":{"trace":"4bf92f35"}`, `"any value"`},
		{"note", `"metadata":{},"priority":7,"route":{"from":"a","to":["b"]}`, `[]`},
		{"note", `"überschrift":"ä","priority":1e3`, `null`},
	} {
		header := fmt.Sprintf(`"v":1,"seq":%d,"id":"%s","session_id":"unknown","type":"%s","timestamp":"2026-11-20T20:00:0%d.000000000Z"`,
			i+1, g.mint.NewID(), member.typ, i)
		line, hash := sealByHand(prev, header, strings.Repeat("5a", 16), member.meta, member.data)
		e, err := event.Parse([]byte(line), "unknown")
		if err != nil {
			g.Fatal(err)
		}
		lines, prev = append(lines, e), hash
	}
	if _, err := transfer.Adopt(g.Context(), g.Log, "unknown", all(lines)); err != nil {
		g.Fatal(err)
	}
	g.append("unknown", event.Event{Type: "acme/from today", Data: jsontext.Value(`0`)})
}

// all yields events without an error.
func all(events []event.Event) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// sealByHand makes a line as docs/FORMAT.md, chapters 1 and 2, says, with none
// of the log's own code.
func sealByHand(prev [sha256.Size]byte, header, salt, meta, data string) (line string, hash [sha256.Size]byte) {
	raw, _ := hex.DecodeString(salt)
	commit := sum(raw, sumOf(meta), sumOf(data))
	hash = sum(prev[:], sumOf(header), commit[:])
	if meta != "" {
		meta = "," + meta
	}
	body := fmt.Sprintf(`%s,"salt":"%s","hash":"%x"%s,"data":%s}`, header, salt, hash, meta, data)
	return fmt.Sprintf(`{"crc":"%08x",%s`, crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli)), body), hash
}

func sum(parts ...[]byte) [sha256.Size]byte { return sha256.Sum256(bytes.Join(parts, nil)) }

func sumOf(text string) []byte {
	h := sum([]byte(text))
	return h[:]
}

// writeNames writes sessions whose ids need escaping in lines and file names.
func writeNames(g *goldenLog, _ string) {
	for _, session := range []string{
		`Größe "in" C:\Temp/日本 🙂`, ".hidden", "..", "UPPER", strings.Repeat("long/", 40), strings.Repeat("a", 144) + strings.Repeat("é", 20), "nul.txt",
	} {
		g.say(session, "who am I?")
		g.append(session, event.Event{Type: `a "quoted" \type`, Data: jsontext.Value(`{}`)})
	}
}

// writeNumbers writes JSON whose literals must stay as they are.
func writeNumbers(g *goldenLog, _ string) {
	g.append("numbers", event.Event{Type: "numbers",
		Metadata: jsontext.Value(`{"big":9007199254740993,"exp":1E+2,"neg":-0,"text":"\u00e9\/é\u2028"}`),
		Data:     jsontext.Value(`{"n":123456789012345678901234567890.10,"z":0.0,"a":[1.0,10e-1],"escaped\u0020name":"\ud83d\ude42"}`)})
	g.append("numbers", event.Event{Type: "numbers", Data: jsontext.Value(" [ 1 , \"two  blanks stay\" ] ")})
}

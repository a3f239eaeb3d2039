package verify_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/line/linetest"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// Forged lines with a right crc and chain are refused by every import, and Verify reports
// their place.
func TestForgedContentIsSeen(t *testing.T) {
	digest := string(event.DigestOf([]byte("body")))
	for _, test := range []struct{ name, rule, from, to string }{
		{"metadata that is no JSON", "payload", `"metadata":{"a":1}`, `"metadata":{"a":1,}`},
		{"metadata with a name twice", "payload", `"metadata":{"a":1}`, `"metadata":{"a":1,"a":1}`},
		{"metadata with white space", "payload", `"metadata":{"a":1}`, `"metadata":{"a": 1}`},
		{"an unknown member twice", "payload", `"metadata":{"a":1}`, `"x":1,"x":2`},
		{"data that is no JSON", "payload", `"data":{"title":"t"}`, `"data":{"title":"t"`},
		{"data of another shape", "payload", `"data":{"title":"t"}`, `"data":{"title":7}`},
		{"data that is null", "payload", `"data":{"title":"t"}`, `"data":null`},
		{"data that breaks a rule", "payload", `"data":{"title":"t"}`, `"data":{"extra":7}`},
		{"a blob that is not listed", "blob", `"type":"session_started"`, `"type":"artifact_recorded"`},
		{"a move beyond the end", "tree", `"type":"session_started"`, `"type":"head_moved"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := eventlog.Open(memory.New())
			defer log.Close()
			started := event.New(event.Session{Title: "t"})
			started.Metadata = []byte(`{"a":1}`)
			if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello"), event.UserMessage("again")); err != nil {
				t.Fatal(err)
			}
			if _, err := log.Append(t.Context(), "s", eventlog.Any(), started); err != nil {
				t.Fatal(err)
			}
			var stream bytes.Buffer
			if err := transfer.Export(t.Context(), log, &stream, "s"); err != nil {
				t.Fatal(err)
			}
			forged := strings.Replace(stream.String(), test.from, test.to, 1)
			if test.rule == "blob" {
				forged = strings.Replace(forged, `{"title":"t"}`, `{"artifact_id":"a","body":{"blob":"`+digest+`","bytes":4}}`, 1)
			}
			if test.rule == "tree" {
				forged = strings.Replace(forged, `{"title":"t"}`, `{"to":3}`, 1)
			}
			seesForgery(t, string(linetest.Rechain([]byte(forged))), test.rule)
		})
	}
}

// seesForgery makes sure that a stream with a forged third line is not imported,
// and that a store that has it is reported.
func seesForgery(t *testing.T, stream, rule string) {
	t.Helper()
	log := eventlog.Open(memory.New())
	defer log.Close()
	if _, err := transfer.Import(t.Context(), log, strings.NewReader(stream)); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("imported: %v", err)
	}
	var head event.Head
	for line := range strings.Lines(stream) {
		e, err := event.Parse([]byte(strings.TrimSuffix(line, "\n")), "s")
		if err != nil {
			t.Fatal(err)
		}
		if err := log.Store().Append(t.Context(), "s", head, []event.Event{e}, false); err != nil {
			t.Fatal(err)
		}
		head = e.Head()
	}
	report, err := verify.Session(t.Context(), log, "s")
	if err != nil || len(report.Defects) != 1 || report.Defects[0].Rule != rule || report.Defects[0].Seq != 3 {
		t.Errorf("verify: %v, %v; want one of %s at event 3", report.Defects, err, rule)
	}
}

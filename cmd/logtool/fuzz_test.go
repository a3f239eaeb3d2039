package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/answers"
)

// Every text names one place or none, and a place prints as a text that names it.
func FuzzParsePlace(f *testing.F) {
	for i, text := range []string{"jsonl:logs", "sqlite:/a:b", "s.db", "dir/S.SQLite", "odd:name", "jsonl:", "", ":", "sqlite:jsonl:x", "a\x00b", "postgres://ann:x@h/d", "nats://ann:x@h", "tls://h,h:1?prefix=x", "C:\\logs", ".db"} {
		f.Add(text, i%3 == 0, i%3 == 1)
	}
	f.Fuzz(func(t *testing.T, text string, file, dir bool) {
		is := func(answer bool) func(string) bool { return func(string) bool { return answer } }
		at, err := parsePlace(text, is(file), is(dir))
		if err != nil {
			if forced, ok := strings.CutPrefix(text, "jsonl:"); exitCode(err) != 2 || ok && forced != "" {
				t.Fatalf("parsePlace(%q): %v", text, err)
			}
			return
		}
		if at.onServer() {
			if !strings.EqualFold(at.path, text) || serverKind(at.String()) != at.kind {
				t.Fatalf("parsePlace(%q) = %v", text, at)
			}
			return
		}
		if at.path == "" || at.kind != kindJSONL && at.kind != kindSQLite || !strings.HasSuffix(text, at.path) {
			t.Fatalf("parsePlace(%q) = %v", text, at)
		}
		for _, answer := range []bool{true, false} {
			if again, err := parsePlace(at.String(), is(answer), is(!answer)); err != nil || again != at {
				t.Fatalf("%q is %v, which is %v, %v", text, at, again, err)
			}
		}
	})
}

// Every text is an expectation in one of three forms, or wrong usage.
func FuzzParseExpect(f *testing.F) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for _, text := range []string{"any", "new", "7:" + hash, "7:" + hash[:12], "7:" + hash[:11], "0:" + hash, "-1:" + hash, "07:" + hash, "+7:" + hash,
		"7:" + strings.ToUpper(hash), "9223372036854775808:" + hash, "7:" + hash + "0", "7", ":", ""} {
		f.Add(text)
	}
	form := regexp.MustCompile(`^0*[1-9][0-9]*:[0-9a-f]{12,64}$`)
	f.Fuzz(func(t *testing.T, text string) {
		expect, at, err := parseExpect(text)
		switch {
		case err != nil:
			if seq, _, _ := strings.Cut(text, ":"); exitCode(err) != 2 || form.MatchString(text) && len(strings.TrimLeft(seq, "0")) < 19 {
				t.Fatalf("parseExpect(%q): %v", text, err)
			}
		case at == nil:
			if text == "any" && expect != eventlog.Any() || text == "new" && expect != eventlog.New() || text != "any" && text != "new" {
				t.Fatalf("parseExpect(%q) = %+v", text, expect)
			}
		case !form.MatchString(text) || at.seq < 1 || !strings.HasSuffix(text, at.hash):
			t.Fatalf("parseExpect(%q) = %+v", text, at)
		}
	})
}

// Events from any standard input have a JSON form that readEvents reads again.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte(`{"type":"note","data":{"a":[1.0,1E400]},"metadata":{"b":"\u0061"},"cost":0.10}` + "\n" + `{"type":"x"}`))
	f.Add([]byte(`{"type":"note","cost":-1}`))
	f.Add([]byte(`{"type":"note","more":1}`))
	f.Add([]byte(`null [] "x" {"type":7}`))
	f.Add([]byte(`{"type":"note","data":null}{"type":"note","data":`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		events, err := readEvents(bytes.NewReader(stream))
		if err != nil {
			if len(events) > 0 || exitCode(err) != 1 || explain(err) == "" {
				t.Fatalf("%d events and %v", len(events), err)
			}
			return
		}
		var printed []byte
		for _, e := range events {
			line, err := json.Marshal(answers.NewEvent{ID: e.ID, Type: e.Type, Data: e.Data, Metadata: e.Metadata, Cost: e.Cost}, json.OmitZeroStructFields(true), jsontext.PreserveRawStrings(true))
			if err != nil {
				t.Fatal(err)
			}
			printed = append(append(printed, line...), '\n')
		}
		again, err := readEvents(bytes.NewReader(printed))
		if err != nil {
			t.Fatalf("%v:\n%s", err, printed)
		}
		if diff := cmp.Diff(givens(events), givens(again)); diff != "" {
			t.Fatalf("read otherwise (-before +after):\n%s\n%s", diff, printed)
		}
	})
}

// givens are the given members of events, without white space in JSON.
func givens(events []event.Event) (all []answers.NewEvent) {
	for _, e := range events {
		g := answers.NewEvent{ID: e.ID, Type: e.Type, Data: e.Data.Clone(), Metadata: e.Metadata.Clone(), Cost: e.Cost}
		_, _ = g.Data.Compact(), g.Metadata.Compact()
		all = append(all, g)
	}
	return all
}

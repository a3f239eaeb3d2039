package main

import (
	"bytes"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// contents are the members with content of events, states, or names of users: models, tools.
// Their members have the names of the format, or of other programs.
var contents = map[string]bool{"data": true, "metadata": true, "message": true, "input": true, "output": true, "arguments": true, "value": true,
	"asked": true, "state": true, "patch": true, "changes": true, "by_model": true, "by_tool": true, "by_source": true, "by_day": true, "by_agent": true, "groups": true}

// strangers are names that mean what session, seq or time means.
var strangers = regexp.MustCompile(`^(session_?id|.*[A-Z].*|timestamp|ts|when|date|sequence|sequence_number|event_seq)$`)

// The JSON of all commands names a session "session", a place "seq", a moment "time", and uses
// snake case.
func TestJSONNames(t *testing.T) {
	store := filepath.Join(t.TempDir(), "log")
	samples := filepath.Join("..", "..", "testdata", "transcripts", "samples")
	const one, other = "3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67", "copied"
	for _, args := range [][]string{
		{"import", samples}, {"fork", one, "--as", "forked", "--label", "x"}, {"copy", one, "--as", other}, {"append", other, "hello"},
		{"state", "snapshot", other}, {"rewind", other, "--to", "3"}, {"recover", other}, {"ls", "--long"}, {"ls"}, {"show", one}, {"search", "species"},
		{"search", "species", "--everything"}, {"tail", one}, {"history", one}, {"tree", "--long"}, {"diff", one, "forked"}, {"stats"}, {"stats", "--per", "day"},
		{"cost", one, "--turns"}, {"cost"}, {"cost", "--per", "model"}, {"runlog", one}, {"export", one, "--path", "active"},
		{"agent", "runs", "--all"}, {"agent", "post", other, "hello"}, {"state", "show", other, "--explain"}, {"state", "list", other},
		{"state", "replay", one}, {"state", "token", other}, {"store", "verify"}, {"store", "repair"}, {"store", "gc"}, {"store", "scan"},
		{"store", "scan", "--rules"}, {"store", "backup", store + "-backup"}, {"store", "retire", "--idle", "0h"}, {"redact", other, "2", "--dry-run"},
		{"redact", "--match", "species", "--dry-run"}, {"rm", "forked", "--dry-run"}, {"verify", one}, {"version"},
	} {
		var out, said bytes.Buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &said, getenv: func(string) string { return "" }, now: quiet().now}
		if code := a.run(t.Context(), append([]string{"--store", store, "--json"}, args...)); code == 2 {
			t.Fatalf("%s: %s", args, said.String())
		}
		names := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			var v any
			if err := json.Unmarshal([]byte(line), &v, jsontext.AllowDuplicateNames(true)); err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			memberNames(v, names)
		}
		if len(names) == 0 && args[0] != "store" {
			t.Errorf("%s prints no JSON: %s", args, said.String())
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if strangers.MatchString(name) {
				t.Errorf("%s has the member %q", args, name)
			}
		}
	}
}

// memberNames collects the names of the members of v, without those inside contents.
func memberNames(v any, names map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if names[name] = true; !contents[name] {
				memberNames(value, names)
			}
		}
	case []any:
		for _, value := range v {
			memberNames(value, names)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/store/memory"
)

// A file in the way stays, and the log gets no fork.
func TestResumeOverwritesNothing(t *testing.T) {
	log := eventlog.Open(memory.New())
	defer log.Close()
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "taken.jsonl")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := resumed{Program: "claude", Session: "child", Parent: "s", At: 1, Path: file}
	err := r.write(t.Context(), log, &interop.Written{Body: []byte("other")})
	if err == nil || !strings.Contains(err.Error(), "exists already: nothing was written") {
		t.Errorf("got error %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if _, err := log.Head(t.Context(), "child"); err == nil {
		t.Error("the log has a fork")
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("files: %v, %v", entries, err)
	}
}

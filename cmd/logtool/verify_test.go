package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// A session that is removed while the store is verified is no damage.
func TestVerifyWhileASessionIsRemoved(t *testing.T) {
	log := eventlog.Open(jsonl.New(t.TempDir(), jsonl.Options{NoSync: true}))
	defer func() { _ = log.Close() }()
	for _, session := range []string{"a", "b"} {
		if _, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	a := &app{out: &out, err: io.Discard, getenv: func(string) string { return "" }, now: time.Now}
	v := verifyRun{app: a, log: log, printer: a.printer(), verifier: verify.New(log)}
	if err := v.everything(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	if err := erase.Remove(t.Context(), log, "a"); err != nil {
		t.Fatal(err)
	}
	if err := v.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := (verifySum{Sessions: 1, Events: 1}); v.all != want {
		t.Errorf("verified %+v, not %+v: %s", v.all, want, out.String())
	}
	// A named session that is missing is an error.
	if err := a.verify(t.Context(), log, []string{"a"}, nil, nil); err == nil {
		t.Error("a session that is not there was verified")
	}
}

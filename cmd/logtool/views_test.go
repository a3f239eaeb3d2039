package main

import (
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// views OUT STORE SESSION...: write what each command that looks at sessions
// prints of them.
func views(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: views OUT STORE SESSION...")
	}
	var text strings.Builder
	look := func(command ...string) {
		ts.Check(ts.Exec("logtool", append([]string{"--store", args[1]}, command...)...))
		text.WriteString("-- " + strings.Join(command, " ") + "\n" + ts.ReadFile("stdout"))
	}
	look("tree", "--long", "--json")
	look("cost", "--json")
	for _, session := range args[2:] {
		look("show", session, "--json")
		look("show", session, "--path", "active", "--full")
		look("history", session)
		look("history", session, "--format", "anthropic")
		look("cost", session, "--turns")
		look("state", session, "--json")
		look("snapshots", session, "--orphaned")
		look("optree", session, "--json")
		look("runlog", session, "--orphaned", "--json")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text.String()), 0o600))
}

// snapshotid NAME FILE: set $NAME to the id of a snapshot in what snapshot printed.
func snapshotID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: snapshotid NAME FILE")
	}
	id := uuids.FindString(ts.ReadFile(args[1]))
	if id == "" {
		ts.Fatalf("no snapshot in %q", ts.ReadFile(args[1]))
	}
	ts.Setenv(args[0], id)
}

var uuids = regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

package main

import (
	"context"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/eventlog"
)

// orphan STORE TEXT: keep a body that no event needs, as a program does that is
// killed before it appends the event.
func orphan(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: orphan STORE TEXT")
	}
	at, err := parsePlace(ts.MkAbs(args[0]), isFile, isDir)
	ts.Check(err)
	ts.Check(at.with(forWriting, func(log *eventlog.Log) error {
		_, err := log.PutBlob(context.Background(), strings.NewReader(args[1]))
		return err
	}))
}

package main

import (
	"context"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// lie STORE SESSION [mark]: append a snapshot which says that nothing was said so
// far, or a mark of what never was.
func lie(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: lie STORE SESSION [mark]")
	}
	at, err := parsePlace(ts.MkAbs(args[0]), isFile, isDir)
	ts.Check(err)
	ts.Check(at.with(forWriting, func(log *eventlog.Log) error {
		ctx := context.Background()
		head, err := log.Head(ctx, args[1])
		if err != nil {
			return err
		}
		s := event.Snapshot{Projection: "transcript", Version: 1, SnapshotID: "made-up", Seq: head.Seq, Hash: head.Hash}
		if len(args) > 2 {
			s.StateDigest = event.DigestOf([]byte("what never was"))
		} else {
			s.State = []byte(`{"transcript":{"version":1,"state":{"items":[]}}}`)
		}
		e := event.New(s)
		_, err = log.Append(ctx, args[1], eventlog.At(head), e)
		return err
	}))
}

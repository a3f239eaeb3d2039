package main

import (
	"context"
	"database/sql"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/internal/flock"
)

// hold FILE: hold the lock of a file until the script ends, as a process does that
// is in the middle of something. A database's is held by a transaction.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold FILE")
	}
	path := ts.MkAbs(args[0])
	if !databaseName(path) {
		unlock, err := flock.Lock(context.Background(), path, true, 0o600)
		ts.Check(err)
		ts.Defer(unlock)
		return
	}
	db, err := sql.Open("sqlite", path)
	ts.Check(err)
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	ts.Check(err)
	ts.Defer(func() { _ = db.Close() })
}

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/internal/pgtest"
)

// newer FILE: change the version of a store's file to a later one.
func newer(ts *testscript.TestScript, args []string) {
	path := ts.MkAbs(args[0])
	if databaseName(path) {
		execute(ts, path, "PRAGMA user_version = 999")
		return
	}
	line := strings.TrimSpace(ts.ReadFile(args[0]))
	line = strings.Replace(line, `"v":1,`, `"v":9,`, 1)
	body := line[len(`{"crc":"00000000",`):]
	sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	ts.Check(os.WriteFile(path, fmt.Appendf(nil, "{\"crc\":\"%08x\",%s\n", sum, body), 0o600))
}

// sqlite FILE SQL: execute the statements of a file in a database.
func runSQL(ts *testscript.TestScript, args []string) {
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o700))
	execute(ts, path, ts.ReadFile(args[1]))
}

func execute(ts *testscript.TestScript, database, statements string) {
	db, err := sql.Open("sqlite", database)
	ts.Check(err)
	_, err = db.Exec(statements)
	ts.Check(err)
	ts.Check(db.Close())
}

// sql STATEMENTS: execute statements on the server $SERVER.
func runServerSQL(ts *testscript.TestScript, args []string) {
	ts.Check(pgtest.Exec("postgres://postgres@"+ts.Getenv("SERVER")+"/postgres?sslmode=disable", args[0]))
}

// hold FILE: hold the lock of a file until the script ends, like a process in the middle
// of a change. A transaction holds the lock of a database.
func hold(ts *testscript.TestScript, args []string) {
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

// wipe FILE: clear the first page of a database.
func wipe(ts *testscript.TestScript, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.Write(make([]byte, 4096))
	ts.Check(errors.Join(err, f.Close()))
}

// torn FILE: append the first bytes of a line, like a killed writer.
func torn(ts *testscript.TestScript, args []string) {
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY|os.O_APPEND, 0)
	ts.Check(err)
	_, err = f.WriteString(`{"crc":"`)
	ts.Check(err)
	ts.Check(f.Close())
}

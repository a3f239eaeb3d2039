package main

import (
	"database/sql"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// bytes FILE HEX: write a file that is no text.
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: bytes FILE HEX")
	}
	content, err := hex.DecodeString(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o600))
}

// longline FILE: write a transcript whose only line has 400 KB.
func longLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: longline FILE")
	}
	line := strings.TrimSpace(ts.ReadFile("good.jsonl"))
	line = strings.Replace(line, "Why does", strings.Repeat("why ", 100<<10)+"does", 1)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(line+"\n"), 0o600))
}

// newer FILE: make the store's file one that a later version wrote.
func newer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: newer FILE")
	}
	path := ts.MkAbs(args[0])
	if databaseName(path) {
		db, err := sql.Open("sqlite", path)
		ts.Check(err)
		_, err = db.Exec("PRAGMA user_version = 999")
		ts.Check(err)
		ts.Check(db.Close())
		return
	}
	line := strings.TrimSpace(ts.ReadFile(args[0]))
	line = strings.Replace(line, `"v":1,`, `"v":9,`, 1)
	body := line[len(`{"crc":"00000000",`):]
	sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	ts.Check(os.WriteFile(path, fmt.Appendf(nil, "{\"crc\":\"%08x\",%s\n", sum, body), 0o600))
}

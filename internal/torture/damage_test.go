//go:build unix

package torture

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/internal/flock"
)

// leaveTornTail adds a torn tail to a session, like a writer that is killed during a
// write. A database has no torn tails.
func (s *fixture) leaveTornTail(session string) {
	s.Helper()
	if s.backend.name != "jsonl" {
		return
	}
	s.edit(session, func(f *os.File, content []byte) error {
		last := content[bytes.LastIndexByte(content[:len(content)-1], '\n')+1:]
		_, err := f.WriteAt(last[:1+s.random.IntN(len(last)-1)], int64(len(content)))
		return err
	})
}

// damage changes a byte in the line of an event.
func (s *fixture) damage(session string, seq int64) {
	s.Helper()
	if s.backend.name == "sqlite" {
		s.exec(`UPDATE events SET line = CAST(replace(line, '"v":1', '"v":!') AS BLOB)
			WHERE session = (SELECT key FROM sessions WHERE id = ?) AND seq = ?`, session, seq)
		return
	}
	s.edit(session, func(f *os.File, content []byte) error {
		at := bytes.Index(content, fmt.Appendf(nil, `"v":1,"seq":%d,`, seq))
		_, err := f.WriteAt([]byte("!"), int64(at)+4)
		return err
	})
}

// rollBack removes the newest events of a session, as if an old backup had been
// restored.
func (s *fixture) rollBack(session string, to int64) {
	s.Helper()
	if s.backend.name == "sqlite" {
		head, err := s.log().Event(s.ctx, session, to)
		s.must(err)
		hash := head.Hash()
		s.exec(`DELETE FROM events WHERE session = (SELECT key FROM sessions WHERE id = ?) AND seq > ?`, session, to)
		s.exec(`UPDATE sessions SET head = ?, hash = ? WHERE id = ?`, to, hash[:], session)
		return
	}
	s.edit(session, func(f *os.File, content []byte) error {
		at := 0
		for range to {
			at += bytes.IndexByte(content[at:], '\n') + 1
		}
		return f.Truncate(int64(at))
	})
}

// edit changes a session's file under its lock.
func (s *fixture) edit(session string, change func(f *os.File, content []byte) error) {
	s.Helper()
	file := filepath.Join(s.dir, session+".jsonl")
	unlock, err := flock.Lock(s.ctx, file, true, 0o600)
	s.must(err)
	defer unlock()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	s.must(err)
	content, err := os.ReadFile(file)
	s.must(err)
	s.must(errors.Join(change(f, content), f.Close()))
}

// exec runs a statement that must change at least one row.
func (s *fixture) exec(statement string, args ...any) {
	s.Helper()
	db, err := sql.Open("sqlite", databaseIn(s.dir)+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	s.must(err)
	tx, err := db.BeginTx(s.ctx, nil)
	s.must(err)
	result, err := tx.Exec(statement, args...)
	s.must(err)
	changed, err := result.RowsAffected()
	s.must(errors.Join(err, tx.Commit(), db.Close()))
	if changed == 0 {
		s.Fatalf("%s changed nothing", statement)
	}
}

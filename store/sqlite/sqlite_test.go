package sqlite_test

import (
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/eventlog/logtest"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/store/storetest"
)

func TestStore(t *testing.T) { storetest.Run(t, openHarness) }

func TestLog(t *testing.T) {
	logtest.Run(t, func(t testing.TB) storetest.Harness {
		h := openHarness(t)
		h.Sample = 1
		return h
	})
}

// TestMain runs more tests in parallel: those that are parallel mostly wait.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	flag.Parse()
	os.Exit(m.Run())
}

func openHarness(t testing.TB) storetest.Harness {
	path := filepath.Join(t.TempDir(), "s.db")
	return storetest.Harness{
		Open:         func() (eventlog.Store, error) { return sqlite.New(path), nil },
		OpenReadOnly: func() (eventlog.Store, error) { return sqlite.New(path, sqlite.Options{ReadOnly: true}), nil },
		Path:         path,
		Damage:       damager(path),
	}
}

// damager returns a function that edits the lines of a session's rows, in order.
func damager(path string) func(session string, edit func(lines []string) []string) error {
	return func(session string, edit func(lines []string) []string) error {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			return err
		}
		defer db.Close()
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := damageRows(tx, session, edit); err != nil {
			return err
		}
		return tx.Commit()
	}
}

func damageRows(tx *sql.Tx, session string, edit func(lines []string) []string) error {
	rows, err := tx.Query(`SELECT line, seq FROM events WHERE session = (SELECT key FROM sessions WHERE id = ?) ORDER BY seq`, session)
	if err != nil {
		return err
	}
	defer rows.Close()
	var lines []string
	var seqs []int64
	for rows.Next() {
		var line string
		var seq int64
		if err := rows.Scan(&line, &seq); err != nil {
			return err
		}
		lines, seqs = append(lines, line+"\n"), append(seqs, seq)
	}
	edited := edit(slices.Clone(lines))
	for i, seq := range seqs {
		if i >= len(edited) {
			_, err = tx.Exec(`DELETE FROM events WHERE session = (SELECT key FROM sessions WHERE id = ?) AND seq = ?`, session, seq)
		} else if edited[i] != lines[i] {
			_, err = tx.Exec(`UPDATE events SET line = ? WHERE session = (SELECT key FROM sessions WHERE id = ?) AND seq = ?`,
				[]byte(strings.TrimSuffix(edited[i], "\n")), session, seq)
		}
		if err != nil {
			return err
		}
	}
	last := int64(0)
	if len(seqs) > 0 {
		last = seqs[len(seqs)-1]
	}
	for i := len(seqs); i < len(edited); i++ {
		last++
		_, err := tx.Exec(`INSERT INTO events (session, seq, id, type, timestamp, line) SELECT key, ?, '', '', 0, ? FROM sessions WHERE id = ?`,
			last, []byte(strings.TrimSuffix(edited[i], "\n")), session)
		if err != nil {
			return err
		}
	}
	return rows.Err()
}

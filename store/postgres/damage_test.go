package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pgtest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/internal/witness"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// ofMain is the key of the session that the table damages, and ofBoth the keys of two.
const (
	ofMain = `(SELECT key FROM sessions WHERE id = 'main')`
	ofBoth = `(SELECT key FROM sessions WHERE id IN ('main', 'other'))`
)

// corruptions are changes of the tables, as a person with rights makes them or a restored table
// has them.
var corruptions = []struct {
	name, change string
	want         finding
}{
	{"the last event", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq = 22`, main},
	{"the last append", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq > 20`, main},
	{"an event", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq = 10`, main},
	{"the first event", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq = 1`, main},
	{"an append", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq BETWEEN 5 AND 7`, main},
	{"half of the events", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq > 11`, main},
	{"all events of a session", `DELETE FROM events WHERE session = ` + ofMain, main},
	{"the row of a session", `DELETE FROM sessions WHERE id = 'main'`, main},
	{"a session", `DELETE FROM events WHERE session = ` + ofMain + `; DELETE FROM sessions WHERE id = 'main'`, main},
	{"all events", `TRUNCATE events`, all},
	{"all sessions", `TRUNCATE sessions`, all},
	{"all tables", `TRUNCATE events, sessions, blobs, blob_pieces, related, blob_users, catalog`, all},
	{"the table of events", `DROP TABLE events`, all},
	{"the table of sessions", `DROP TABLE sessions`, all},
	{"the table of versions", `TRUNCATE convlog`, all},
	{"the schema", `DROP SCHEMA %s CASCADE`, all},
	{"an older copy of a session", `DELETE FROM events WHERE session = ` + ofMain + ` AND seq > 20;
		UPDATE sessions SET head = 20, hash = $20 WHERE id = 'main'`, main},
	{"an older copy of the store", `DELETE FROM events WHERE session IN ` + ofBoth + ` AND seq > 1;
		UPDATE sessions SET head = 1, hash = $1 WHERE id = 'main'; UPDATE sessions SET head = 1, hash = $other WHERE id = 'other'`, both},
	{"a bit of a line", `UPDATE events SET line = set_bit(line, 300, 1 - get_bit(line, 300)) WHERE session = ` + ofMain + ` AND seq = 10`, main},
	{"half of a line", `UPDATE events SET line = substr(line, 1, length(line) / 2) WHERE session = ` + ofMain + ` AND seq = 10`, main},
	{"a line in the place of another", `UPDATE events SET line = (SELECT line FROM events WHERE session = ` + ofMain + ` AND seq = 11) WHERE session = ` + ofMain + ` AND seq = 10`, main},
	{"two seqs exchanged", `UPDATE events SET seq = -seq WHERE session = ` + ofMain + ` AND seq IN (10, 11); UPDATE events SET seq = 21 + seq WHERE session = ` + ofMain + ` AND seq < 0`, main},
	{"events of another session", `UPDATE events SET session = 99 WHERE session = ` + ofMain + ` AND seq > 11`, main},
	{"two sessions exchanged", `UPDATE sessions SET id = 'x' WHERE id = 'main'; UPDATE sessions SET id = 'main' WHERE id = 'other'; UPDATE sessions SET id = 'other' WHERE id = 'x'`, both},
	{"another id", `UPDATE sessions SET id = 'mainly' WHERE id = 'main'`, main},
	{"a lower head", `UPDATE sessions SET head = 20 WHERE id = 'main'`, main},
	{"a higher head", `UPDATE sessions SET head = 30 WHERE id = 'main'`, main},
	{"another hash", `UPDATE sessions SET hash = decode(repeat('ab', 32), 'hex') WHERE id = 'main'`, main},
	{"a higher first", `UPDATE sessions SET first = 5 WHERE id = 'main'`, main},
	{"a blob", `DELETE FROM blobs`, main},
	{"the pieces of blobs", `TRUNCATE blob_pieces`, main},
	{"the bytes of a blob", `UPDATE blob_pieces SET body = decode(repeat('00', length(body)), 'hex')`, main},
	{"a part of a blob", `UPDATE blob_pieces SET body = substr(body, 1, 5)`, main},

	{"the rows of lists", `TRUNCATE catalog`, none},
	{"the columns of an event", `UPDATE events SET type = 'x', at = at + 1, id = gen_random_uuid() WHERE session = ` + ofMain, none},
	{"the size of a session", `UPDATE sessions SET bytes = bytes + 1 WHERE id = 'main'`, none},
}

// finding is which sessions verify names.
type finding int

const (
	none finding = iota // no line is lost
	main                // the session main, and perhaps its fork
	both                // the sessions main and other
	all
)

// Whatever is done to the tables, verify names the sessions that lost or changed something,
// if it knows their heads.
func TestCorruption(t *testing.T) {
	t.Parallel()
	for i, row := range corruptions {
		if !testsize.Every(i, 6) {
			continue
		}
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			s := newStore(t, dsn)
			witness.WriteSample(t, s)
			w := witness.New(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			hash := func(session string, seq int) string {
				h := w.Written(session)[seq-1].Hash()
				return fmt.Sprintf(`'\x%s'`, h)
			}
			change := strings.NewReplacer("$20", hash(witness.Main, 20), "$1", hash(witness.Main, 1), "$other", hash(witness.Other, 1)).Replace(row.change)
			_, schema, err := pgtest.Split(dsn)
			if err == nil {
				err = inTables(dsn, func(ctx context.Context, tx pgx.Tx) error {
					_, err := tx.Exec(ctx, strings.ReplaceAll(change, "%s", schema))
					return err
				})
			}
			if err != nil {
				t.Fatal(err)
			}
			named, _ := w.CheckHeads(t, newStore(t, dsn))
			has := func(session string) bool { return slices.Contains(named, session) }
			if has(witness.Main) != (row.want >= main) || has(witness.Other) != (row.want >= both) || (row.want == all) && !has(witness.Fork) || row.want == none && has(witness.Fork) {
				t.Errorf("these sessions are named: %q", named)
			}
		})
	}
}

// Events whose session has no row are damage of the store, in one table and in partitions.
func TestStrays(t *testing.T) {
	t.Parallel()
	for _, partitions := range []string{"0", "3"} {
		t.Run(partitions, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.DSN(t)
			opened := dsn
			if partitions != "0" {
				opened = with(t, dsn, "partitions", partitions)
			}
			s := newStore(t, opened)
			witness.WriteSample(t, s)
			log := eventlog.Open(s)
			check := func() []eventlog.Defect {
				t.Helper()
				found, err := suite.Defects(verify.Store(t.Context(), log))
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			if err := erase.Remove(t.Context(), log, witness.Other); err != nil {
				t.Fatal(err)
			}
			if found := check(); len(found) > 0 {
				t.Fatalf("found %v in an undamaged store", found)
			}
			sql(t, dsn, `DELETE FROM %s.sessions WHERE id = 'main'`)
			found := check()
			if len(found) != 1 || found[0].Rule != "stray" || found[0].Path != "table events" || found[0].Offset != -1 ||
				!strings.HasPrefix(found[0].Detail, "22 events (seq 1 to 22) have no session") || !strings.Contains(found[0].Detail, "logtool store convert") {
				t.Errorf("found %v, want 22 events without a session", found)
			}
		})
	}
}

func newStore(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	s, err := postgres.New(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

package sqlite

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/witness"
)

// all is the number of events in the main session.
const all = 22

// corruption is a row of the table: a statement that damages the tables, and the
// expected findings. ? is the key of the main session.
type corruption struct {
	name   string
	change string
	want   outcome
}

// outcome is the expected state of the main session.
type outcome struct {
	shown, backward int    // events read before the damage, forward and backward
	table           string // the damaged table; empty if there is no damage
	seq, back       int64  // seq of the damage, forward and backward; 0 if unknown
	kind            kind
}

type kind int

const (
	// refusing: an append fails with damage.
	refusing kind = iota
	// whole: all events are readable, and an append succeeds.
	whole
	// occupied: all events are readable. An append fails because a row with its seq
	// exists; Verify reports the row.
	occupied
	// stray: as whole, and Verify reports an extra row.
	stray
	// untyped: as whole, and Verify reports the column type of a row.
	untyped
	// newer: the session has an event of a newer version.
	newer
	// bodiless: a body is damaged. Appends succeed.
	bodiless
	// absent: the session does not exist.
	absent
)

var (
	// unseen is damage that no reader meets: in columns for people and indexes, and in
	// the size that a listing shows.
	unseen = outcome{shown: all, backward: all, kind: whole}
	gone   = outcome{kind: absent}
	blob   = outcome{shown: 7, backward: all - 8, table: "blob", seq: 8, kind: bodiless}
)

func events(shown, backward int) outcome {
	return outcome{shown: shown, backward: backward, table: "table events"}
}

func sessions(shown, backward int) outcome {
	return outcome{shown: shown, backward: backward, table: "table sessions"}
}

func (o outcome) at(seq int64) outcome { return o.between(seq, seq) }

// between expects damage from seq to back.
func (o outcome) between(seq, back int64) outcome {
	o.seq, o.back = seq, back
	return o
}

func (o outcome) as(k kind) outcome {
	o.kind = k
	return o
}

var corruptions = []corruption{
	{"a row is lost", `DELETE FROM events WHERE session = ? AND seq = 10`, events(9, 12).at(10)},
	{"the first row is lost", `DELETE FROM events WHERE session = ? AND seq = 1`, events(0, 21).at(1)},
	{"the last row is lost", `DELETE FROM events WHERE session = ? AND seq = 22`, events(21, 0).at(22)},
	{"the last append is lost", `DELETE FROM events WHERE session = ? AND seq >= 21`, events(20, 0).between(21, 22)},
	{"all rows are lost", `DELETE FROM events WHERE session = ?`, events(0, 0).between(1, 22)},
	{"a row too many", `INSERT INTO events (session, seq, id, type, timestamp, line) SELECT session, 23, id, type, timestamp, line FROM events WHERE session = ? AND seq = 22`, unseen.as(occupied)},
	{"a row before the first", `INSERT INTO events (session, seq, id, type, timestamp, line) SELECT session, 0, id, type, timestamp, line FROM events WHERE session = ? AND seq = 1`, unseen.as(stray)},
	{"rows change places", `UPDATE events SET seq = CASE seq WHEN 10 THEN -11 WHEN 11 THEN -10 END WHERE session = ? AND seq IN (10, 11); UPDATE events SET seq = -seq WHERE seq < 0`, events(9, 11).between(10, 11)},
	{"a bit of a line", `UPDATE events SET line = CAST(replace(line, '"go on"', '"go oo"') AS BLOB) WHERE session = ? AND seq = 11`, events(10, 11).at(11)},
	{"a bit of the last line", `UPDATE events SET line = CAST(replace(line, '"bye"', '"bye?"') AS BLOB) WHERE session = ? AND seq = 22`, events(21, 0).at(22)},
	{"a bit of the first line", `UPDATE events SET line = CAST(replace(line, 'support', 'suppost') AS BLOB) WHERE session = ? AND seq = 1`, events(0, 21).at(1)},
	{"a line of zeroes", `UPDATE events SET line = zeroblob(length(line)) WHERE session = ? AND seq = 10`, events(9, 12).at(10)},
	{"an empty line", `UPDATE events SET line = x'' WHERE session = ? AND seq = 10`, events(9, 12).at(10)},
	{"a line that is text", `UPDATE events SET line = CAST(line AS TEXT) WHERE session = ? AND seq = 10`, events(9, 12).at(10)},
	{"a line that is a number", `UPDATE events SET line = 7 WHERE session = ? AND seq = 10`, events(9, 12).at(10)},
	{"a line of another session", `UPDATE events SET line = (SELECT line FROM events o JOIN sessions s ON o.session = s.key WHERE s.id = 'other' AND o.seq = 2) WHERE session = ? AND seq = 10`, events(9, 12).at(10)},
	{"a newer version of the envelope", `UPDATE events SET line = CAST(replace(line, '"v":1', '"v":2') AS BLOB) WHERE session = ? AND seq = 10`, events(9, 12).as(newer)},
	{"white space in a line", `UPDATE events SET line = CAST(replace(line, ',"seq"', ' , "seq"') AS BLOB) WHERE session = ? AND seq = 10`, unseen},
	{"the id column", `UPDATE events SET id = 'x' WHERE session = ? AND seq = 10`, unseen},
	{"the type column", `UPDATE events SET type = 'x' WHERE session = ? AND seq = 10`, unseen},
	{"the type column of a head_moved", `UPDATE events SET type = 'x' WHERE session = ? AND type = 'head_moved'`, unseen.as(untyped)},
	{"a type column with head_moved", `UPDATE events SET type = 'head_moved' WHERE session = ? AND seq = 10`, unseen.as(untyped)},
	{"the time column", `UPDATE events SET timestamp = timestamp + 1 WHERE session = ? AND seq = 10`, unseen},
	{"rows of another key", `UPDATE events SET session = 99 WHERE session = ?`, events(0, 0).between(1, 22)},
	{"half of the rows of another key", `UPDATE events SET session = 99 WHERE session = ? AND seq > 11`, events(11, 0).between(12, 22)},
	{"the session's row is lost", `DELETE FROM sessions WHERE key = ?`, gone},
	{"the head is lower", `UPDATE sessions SET head = 20 WHERE key = ?`, sessions(19, 0).at(20)},
	{"the head is higher", `UPDATE sessions SET head = 30 WHERE key = ?`, events(22, 0).between(23, 30)},
	{"the head is text", `UPDATE sessions SET head = 'x' WHERE key = ?`, sessions(0, 0)},
	{"the hash is another", `UPDATE sessions SET hash = randomblob(32) WHERE key = ?`, sessions(21, 0).at(22)},
	{"the hash is short", `UPDATE sessions SET hash = x'00' WHERE key = ?`, sessions(0, 0)},
	{"the first is higher", `UPDATE sessions SET first = 5 WHERE key = ?`, sessions(0, 17).at(5)},
	{"the first is lower", `UPDATE sessions SET first = -5 WHERE key = ?`, sessions(0, 0)},
	{"the first is beyond the head", `UPDATE sessions SET first = 50 WHERE key = ?`, sessions(0, 0)},
	{"the size is another", `UPDATE sessions SET bytes = bytes + 1 WHERE key = ?`, unseen},
	{"the id is another", `UPDATE sessions SET id = 'mainly' WHERE key = ?`, gone},
	{"a blob is lost", `DELETE FROM blobs`, blob},
	{"a blob's pieces are lost", `DELETE FROM blob_pieces`, blob},
	{"a blob is altered", `UPDATE blob_pieces SET body = zeroblob(length(body))`, blob},
	{"a blob is shorter", `UPDATE blob_pieces SET body = substr(body, 1, 5)`, blob},
	{"a blob is longer", `UPDATE blob_pieces SET body = CAST(body || 'x' AS BLOB)`, blob},
	{"a blob's size is another", `UPDATE blobs SET bytes = bytes - 1`, blob},
}

func TestCorruption(t *testing.T) {
	p := newFixture(t)
	for _, row := range corruptions {
		t.Run(row.name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.put(p.file)
			p.sql(func(c *conn) error {
				result, err := c.exec(row.change, p.key)
				if err == nil {
					if n, err := result.RowsAffected(); err != nil || n == 0 {
						t.Errorf("%d rows were damaged: %v", n, err)
					}
				}
				return err
			})
			p.check(p.Examine(t, p.open(), witness.Main), row.want)
		})
	}
}

// check compares the findings with the expected outcome.
func (p *fixture) check(f *witness.Findings, o outcome) {
	p.Helper()
	if got := f.Forward.Seqs; !slices.Equal(got, seqsBetween(1, o.shown)) {
		p.Errorf("read %v, want %d events", got, o.shown)
	}
	if got := f.Backward.Seqs; len(got) != o.backward {
		p.Errorf("read backward %v, want %d events", got, o.backward)
	}
	switch o.kind {
	case refusing:
		p.damaged("forward", f.Forward.Err, o, o.seq)
		p.damaged("backward", f.Backward.Err, o, o.back)
		p.damaged("append", f.Append, o, o.back)
		p.defect(f, o)
	case newer:
		for _, err := range []error{f.Forward.Err, f.Backward.Err, f.Append} {
			want(p, event.ErrVersion, err)
		}
		p.defect(f, o)
	case bodiless:
		p.noErrors(f.VerifyErr, f.Append)
		p.defect(f, o)
	case absent:
		want(p, eventlog.ErrNotFound, f.Forward.Err)
		p.noErrors(f.Append)
	case whole:
		p.noErrors(f.Forward.Err, f.Backward.Err, f.VerifyErr, f.Append)
		if f.Detected() {
			p.Errorf("Verify reports %v %v", f.Report.Defects, f.Report.Notes)
		}
	case stray, untyped:
		p.noErrors(f.Forward.Err, f.Backward.Err, f.VerifyErr, f.Append)
		p.reported(f)
	case occupied:
		p.noErrors(f.Forward.Err, f.Backward.Err, f.VerifyErr)
		p.damaged("append", f.Append, events(0, 0), all+1)
		p.reported(f)
	}
}

func (p *fixture) reported(f *witness.Findings) {
	p.Helper()
	if len(f.Report.Defects) == 0 {
		p.Errorf("Verify reports nothing")
	}
}

func seqsBetween(from, to int) (all []int64) {
	for seq := from; seq <= to; seq++ {
		all = append(all, int64(seq))
	}
	return all
}

func (p *fixture) noErrors(errs ...error) {
	p.Helper()
	if err := errors.Join(errs...); err != nil {
		p.Errorf("an error: %v", err)
	}
}

func (p *fixture) damaged(what string, err error, want outcome, seq int64) {
	p.Helper()
	var damage *eventlog.CorruptError
	if !errors.As(err, &damage) || !strings.Contains(damage.Path, want.table) || damage.Seq != seq {
		p.Errorf("%s: %v, want damage in %s, seq %d", what, err, want.table, seq)
	}
}

func (p *fixture) defect(f *witness.Findings, want outcome) {
	p.Helper()
	if !slices.ContainsFunc(f.Report.Defects, func(d eventlog.Defect) bool { return d.Seq == want.seq || d.Rule == "version" }) {
		p.Errorf("Verify has no defect at seq %d: %v", want.seq, f.Report.Defects)
	}
}

package sqlite

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// applicationID marks the file as a log: "cvlg" in ASCII, at byte 68.
const applicationID = 0x63766c67

// schemaVersion is the version this program writes and the highest it reads.
// It stands in the file as PRAGMA user_version.
const schemaVersion = 2

// migrations lead from one version of the schema to the next: the first makes
// an empty file version 1. Released entries never change; a new version is a
// new entry.
var migrations = [schemaVersion]string{schema1, schema2}

// schema1 is version 1.
//
// Keys are AUTOINCREMENT so that none is ever used twice: a key that is
// remembered can go stale but never means something else, and the rowids of
// events increase in the order of the commits, for whoever follows them.
//
// The line is the truth. The columns before it are derived from it, for people
// and for indexes; the line comes last so that reading them never follows a
// long row to its overflow pages.
const schema1 = `
CREATE TABLE sessions (
	key      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT    NOT NULL UNIQUE,
	first    INTEGER NOT NULL, -- seq of the session's own first event
	head     INTEGER NOT NULL, -- seq of its newest event
	hash     BLOB    NOT NULL, -- hash of its newest event, 32 bytes
	bytes    INTEGER NOT NULL, -- size of its lines, a newline each counted
	revision INTEGER NOT NULL DEFAULT 0 -- how often lines were rewritten
);
CREATE TABLE events (
	key       INTEGER PRIMARY KEY AUTOINCREMENT,
	session   INTEGER NOT NULL, -- sessions.key
	seq       INTEGER NOT NULL,
	id        TEXT    NOT NULL, -- ULID
	type      TEXT    NOT NULL,
	timestamp INTEGER NOT NULL, -- microseconds since 1970, UTC
	line      BLOB    NOT NULL, -- as docs/FORMAT.md has it, without newline
	UNIQUE (session, seq)
);
-- A blob's body stands in pieces of 1 MiB, the last one shorter, so that
-- neither writing nor reading a large one needs it in memory as a whole.
CREATE TABLE blobs (
	key     INTEGER PRIMARY KEY AUTOINCREMENT,
	digest  TEXT    NOT NULL UNIQUE, -- sha256:<64 hex>
	bytes   INTEGER NOT NULL,
	written INTEGER NOT NULL -- microseconds since 1970, UTC
);
CREATE TABLE blob_pieces (
	blob  INTEGER NOT NULL, -- blobs.key
	piece INTEGER NOT NULL, -- from 0
	body  BLOB    NOT NULL,
	PRIMARY KEY (blob, piece)
);
`

// schema2 adds the index of texts (index.go). It is derived from the events, and
// can be made anew at any time.
//
// The index keeps no text, nor words: an event's row has the pieces of three bytes
// of its words (grams.go). A row's id is the session's key times 2^32 plus the
// event's seq, so that a session's rows are together and in order. Rows are
// taken out without a trace (secure-delete).
const schema2 = makeSearch + `
CREATE TABLE search_state (
	key       INTEGER PRIMARY KEY CHECK (key = 1),
	rules     INTEGER NOT NULL, -- by which texts become pieces; of other ones the index is made anew
	watermark INTEGER NOT NULL, -- events.key up to which events are in the index
	erasures  INTEGER NOT NULL  -- how often rows were taken out, or may have been
);
INSERT INTO search_state (key, rules, watermark, erasures) VALUES (1, 0, 0, 0);
`

const makeSearch = `
CREATE VIRTUAL TABLE search USING fts5(grams, content='', columnsize=0, detail=none, tokenize='ascii');
INSERT INTO search (search, rank) VALUES ('secure-delete', 1);
INSERT INTO search (search, rank) VALUES ('usermerge', 2);
`

// notDatabase is the error of a file that SQLite does not recognise. It
// matches ErrCorrupt, since damage to a database's first bytes looks the same.
type notDatabase struct{ detail string }

func (e notDatabase) Error() string        { return e.detail }
func (e notDatabase) Is(target error) bool { return target == eventlog.ErrCorrupt }

// fileKind is what stands in the header of a database file.
type fileKind struct {
	application, version int64
	tables               int64
}

// inspect reads the kind of the file c is connected to, in one transaction,
// so that a migration by another process is seen as a whole or not at all.
func inspect(c *conn) (k fileKind, err error) {
	if err := c.run("SAVEPOINT inspection"); err != nil {
		return k, fmt.Errorf("read the schema: %w", err)
	}
	for _, q := range []struct {
		query string
		to    *int64
	}{
		{"PRAGMA application_id", &k.application},
		{"PRAGMA user_version", &k.version},
		{"SELECT count(*) FROM sqlite_schema", &k.tables},
	} {
		if *q.to, err = c.number(q.query); err != nil {
			break
		}
	}
	if released := c.run("RELEASE inspection"); err == nil {
		err = released
	}
	if isCode(err, codeNotADB) {
		return k, notDatabase{"not a database"}
	}
	return k, wrap("read the schema", err)
}

// check refuses files that are not of this program or of a newer one.
func (k fileKind) check() error {
	switch {
	case k.application != applicationID && (k.application != 0 || k.tables > 0 || k.version != 0):
		return notDatabase{fmt.Sprintf("a database of another program (application id %#x)", uint32(k.application))}
	case k.version < 0:
		return notDatabase{fmt.Sprintf("a database of schema version %d", k.version)}
	case k.version > schemaVersion:
		return &event.VersionError{What: "sqlite schema", Got: int(k.version), Max: schemaVersion}
	default:
		return nil
	}
}

// oldestReadable is the oldest version that is read without being migrated: it
// lacks nothing but the index of texts.
const oldestReadable = 1

// errUnmade is the error of a file without tables: another process is making the
// store just now, or was ended before it had.
var errUnmade = errors.New("an empty database, not a store yet")

// checkReadable is check for connections that may not migrate.
func (k fileKind) checkReadable() error {
	if err := k.check(); err != nil {
		return err
	}
	if k == (fileKind{}) {
		return errUnmade
	}
	if k.version < oldestReadable {
		return fmt.Errorf("schema version %d: open it for writing once, to bring it to version %d", k.version, schemaVersion)
	}
	return nil
}

// migrate brings the file to the current schema, in one transaction. After an
// error that is not busyness the connection must be closed.
func migrate(c *conn) error {
	kind, err := inspect(c)
	if err == nil {
		err = kind.check()
	}
	if err != nil || kind.version == schemaVersion {
		return err
	}
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	if err := migrateLocked(c); err != nil {
		return err
	}
	return wrap("migrate", c.run("COMMIT"))
}

func migrateLocked(c *conn) error {
	kind, err := inspect(c) // again: another process may have been faster
	if err == nil {
		err = kind.check()
	}
	if err != nil {
		return err
	}
	for v := kind.version; v < schemaVersion; v++ {
		if err := c.run(migrations[v]); err != nil {
			return fmt.Errorf("migrate to schema version %d: %w", v+1, err)
		}
	}
	return c.run(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion))
}

package sqlite

import (
	"errors"
	"fmt"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// applicationID marks the file as a log: "cvlg" in ASCII, at byte 68.
const applicationID = 0x63766c67

// schemaVersion is the version that this program writes, and the only one it reads. The
// file has it as PRAGMA user_version. Programs before the first release wrote versions 1 to 6.
const schemaVersion = 7

// schema creates the tables.
//
// Keys are AUTOINCREMENT, so SQLite never uses a key twice: a cached key can be stale
// but never refers to another session. The keys of events increase in the order of the
// commits.
//
// The line is the authority. The other columns of events are derived from it, for
// people and for indexes. The line is the last column, so SQLite reads the other
// columns without the overflow pages of a long row.
//
// The text index (index.go), the catalog (catalog.go), the relations of sessions and the
// users of blobs (lookup.go) are derived from the events. Table erasing is the record of a
// running erasure (erasing.go). Table identity has the id of the store, once one is needed
// (identity.go).
const schema = `
CREATE TABLE sessions (
	key      INTEGER PRIMARY KEY AUTOINCREMENT,
	id       TEXT    NOT NULL UNIQUE,
	first    INTEGER NOT NULL, -- seq of the session's own first event
	head     INTEGER NOT NULL, -- seq of its newest event
	hash     BLOB    NOT NULL, -- hash of its newest event, 32 bytes
	bytes    INTEGER NOT NULL, -- size of its lines, a newline each counted
	active   INTEGER NOT NULL, -- timestamp of its newest event
	revision INTEGER NOT NULL DEFAULT 0 -- how often lines were rewritten
);
CREATE INDEX sessions_active ON sessions (active DESC, id);
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
CREATE INDEX events_snapshots ON events (session, seq) WHERE ` + snapshotRows + `;
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
CREATE TABLE search_state (
	key       INTEGER PRIMARY KEY CHECK (key = 1),
	rules     INTEGER NOT NULL, -- by which texts become pieces; of other ones the index is made anew
	watermark INTEGER NOT NULL, -- events.key up to which events are in the index
	erasures  INTEGER NOT NULL  -- how often rows were taken out, or may have been
);
INSERT INTO search_state (key, rules, watermark, erasures) VALUES (1, 0, 0, 0);
CREATE TABLE erasing (digest TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE catalog (
	session INTEGER PRIMARY KEY, -- sessions.key
	row     BLOB NOT NULL -- derived from the session's events; may be deleted at any time
);
CREATE TABLE related (
	name    TEXT    NOT NULL, -- relation.Of the session's first event
	session INTEGER NOT NULL, -- sessions.key
	PRIMARY KEY (name, session)
) WITHOUT ROWID;
CREATE INDEX related_session ON related (session);
CREATE TABLE blob_users (
	digest  TEXT    NOT NULL, -- of a blob that the event lists
	session INTEGER NOT NULL, -- sessions.key
	seq     INTEGER NOT NULL,
	PRIMARY KEY (digest, session, seq)
) WITHOUT ROWID;
CREATE INDEX blob_users_event ON blob_users (session, seq);
` + makeSearch

// snapshotRows is true for the rows of snapshots and of head_moved events, of any payload
// version. SQLite uses the index for a query that has the condition of the index, word for word.
const snapshotRows = `(type BETWEEN 'head_moved' AND 'head_moved/~' OR type BETWEEN 'projection_snapshotted' AND 'projection_snapshotted/~')`

// makeSearch creates the text index. It has no text and no words. The row of an event has
// the grams of its words (grams.go). A row id is the session's key times 2^32 plus the
// event's seq, so the rows of a session are adjacent and in order. SQLite overwrites
// deleted rows (secure-delete).
const makeSearch = `
CREATE VIRTUAL TABLE search USING fts5(grams, content='', columnsize=0, detail=none, tokenize='ascii');
INSERT INTO search (search, rank) VALUES ('secure-delete', 1);
INSERT INTO search (search, rank) VALUES ('usermerge', 2);
`

// notDatabase is the error of a file that is not a database of this program. It
// matches ErrCorrupt, because damage to the first bytes of a database looks the same.
type notDatabase struct {
	detail    string
	ofAnother bool // its header is whole, and of another program
}

func (e notDatabase) Error() string        { return e.detail }
func (e notDatabase) Is(target error) bool { return target == eventlog.ErrCorrupt }

// fileKind is the information in the header of a database file.
type fileKind struct {
	application, version int64
	tables               int64
}

// inspect reads the kind of c's file in one transaction, so it sees the tables of another
// process completely or not at all.
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
		return k, notDatabase{detail: "not a database"}
	}
	return k, wrap("read the schema", err)
}

// check returns an error for a file of another program or of another version.
func (k fileKind) check() error {
	switch {
	case k == fileKind{}: // an empty file
		return nil
	case k.application != applicationID:
		return notDatabase{fmt.Sprintf("a database of another program (application id %#x)", uint32(k.application)), true}
	case k.version < 1:
		return notDatabase{fmt.Sprintf("a database of schema version %d", k.version), true}
	case k.version != schemaVersion:
		return otherSchema(k.version)
	default:
		return nil
	}
}

func otherSchema(version int64) error {
	return &event.VersionError{What: "sqlite schema", Got: int(version), Max: schemaVersion}
}

// errNoSchema is the error of a file without tables. Another process is creating the
// store, or crashed before it created the tables.
var errNoSchema = errors.New("the database is empty: open the store for writing once, to create its tables")

// checkReadable is check for connections that must not create tables.
func (k fileKind) checkReadable() error {
	if k == (fileKind{}) {
		return errNoSchema
	}
	return k.check()
}

// create creates the tables of an empty file in one transaction. After an error other than
// busy, the caller must close the connection.
func create(c *conn) error {
	kind, err := inspect(c)
	if err == nil {
		err = kind.check()
	}
	if err != nil || kind.version == schemaVersion {
		return err
	}
	if err := c.run("BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("create the tables: %w", err)
	}
	if err := createLocked(c); err != nil {
		return err
	}
	return wrap("create the tables", c.run("COMMIT"))
}

func createLocked(c *conn) error {
	kind, err := inspect(c) // again: another process may have created them
	if err == nil {
		err = kind.check()
	}
	if err != nil || kind.version == schemaVersion {
		return err
	}
	return wrap("create the tables", c.run(schema+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, schemaVersion)))
}

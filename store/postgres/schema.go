package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/convlog/convlog/event"
)

// schemaVersion is the version that this program writes, and the only one it reads. Table
// convlog has it. Programs before the first release wrote versions 1 to 3.
const schemaVersion = 4

// ErrNoLog reports that the schema of the DSN has no log. Open it for writing once, or
// name another schema.
var ErrNoLog = errors.New("no log")

// oldestServer is the oldest version of PostgreSQL that has all that the store uses.
const oldestServer = 140000

// tables creates the tables, without the table of events, whose partitions are an option.
// Rows of sessions change with each append: the fill factor leaves room to change them
// in place.
const tables = `
CREATE TABLE convlog (
	version    int NOT NULL,
	partitions int NOT NULL -- of table events; 0 if it has none
);
CREATE TABLE sessions (
	id       bytea  PRIMARY KEY,
	key      bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- never used twice
	first    bigint NOT NULL, -- seq of the session's own first event
	head     bigint NOT NULL, -- seq of its newest event
	hash     bytea  NOT NULL, -- hash of its newest event, 32 bytes
	bytes    bigint NOT NULL, -- size of its lines, a newline each counted
	revision bigint NOT NULL DEFAULT 0, -- how often lines were rewritten
	changed  xid8   NOT NULL DEFAULT pg_current_xact_id() -- the transaction of the newest change
) WITH (fillfactor = 50);
CREATE TABLE blobs (
	digest  bytea  PRIMARY KEY, -- SHA-256, 32 bytes
	key     bigint NOT NULL UNIQUE,
	bytes   bigint NOT NULL,
	written timestamptz NOT NULL
);
CREATE SEQUENCE blob_keys;
CREATE TABLE blob_pieces (
	blob  bigint NOT NULL, -- blobs.key
	piece int    NOT NULL, -- from 0
	body  bytea  NOT NULL, -- 1 MiB, the last one shorter
	PRIMARY KEY (blob, piece)
);
CREATE TABLE related (
	name    bytea NOT NULL, -- relation.Of the session's first event
	session bytea NOT NULL, -- sessions.id
	PRIMARY KEY (name, session)
);
CREATE INDEX ON related (session);
CREATE TABLE blob_users (
	digest  bytea  NOT NULL, -- of a blob that the event lists
	session bytea  NOT NULL, -- sessions.id
	seq     bigint NOT NULL,
	PRIMARY KEY (digest, session, seq)
);
CREATE INDEX ON blob_users (session, seq);
CREATE TABLE leases (
	name    bytea  PRIMARY KEY,
	epoch   bigint NOT NULL GENERATED ALWAYS AS IDENTITY, -- grows with each holder
	owner   bigint NOT NULL, -- the number of an advisory lock that the open store holds
	expires timestamptz NOT NULL -- by the clock of the server
);
CREATE INDEX ON leases (owner);
CREATE TABLE fence (
	epoch    bigint  NOT NULL, -- grows with each exclusive store lock
	erasing  boolean NOT NULL, -- the store lock is held exclusively, or its holder died
	removals bigint  NOT NULL  -- how many sessions were removed
);
INSERT INTO fence VALUES (0, false, 0);
CREATE TABLE erasing (digest bytea PRIMARY KEY); -- an empty digest: the tables may have erased bytes
CREATE TABLE copies (
	number  bigint NOT NULL,
	session bytea  NOT NULL,
	seq     bigint NOT NULL,
	line    bytea  NOT NULL,
	PRIMARY KEY (number, seq)
);
CREATE INDEX ON copies (session);
CREATE TABLE catalog (
	session bigint PRIMARY KEY, -- sessions.key
	row     bytea  NOT NULL -- derived from the events; may be deleted at any time
);
CREATE SEQUENCE copy_numbers;
` + makeIdentity + ";"

// eventTable creates the table of events. Types are bytes, like session ids.
const eventTable = `
CREATE TABLE events (
	session bigint NOT NULL, -- sessions.key
	seq     bigint NOT NULL,
	id      uuid   NOT NULL, -- the 16 bytes of the ULID
	type    bytea  NOT NULL, -- UTF-8
	at      bigint NOT NULL, -- microseconds since 1970, UTC
	line    bytea  NOT NULL, -- as docs/FORMAT.md has it, without newline
	PRIMARY KEY (session, seq)
)`

// snapshotRows is true for the rows of snapshots and of head_moved events, of any payload
// version. PostgreSQL uses the index for a query that has the condition of the index.
const snapshotRows = `(type BETWEEN 'head_moved' AND 'head_moved/~' OR type BETWEEN 'projection_snapshotted' AND 'projection_snapshotted/~')`

const snapshotIndex = `;CREATE INDEX ON events (session, seq) WHERE ` + snapshotRows

// The schema of a DSN, as the server has it. table has no row if the schema is missing.
const (
	findServer = `SELECT current_setting('server_version_num')::int, pg_backend_pid(), current_setting('fsync'), current_database()`
	findSchema = `SELECT
		(SELECT count(*) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v')),
		EXISTS (SELECT FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.relnamespace = n.oid AND c.relname = 'convlog' AND a.attname = 'version'),
		has_schema_privilege(n.oid, 'USAGE')
		FROM pg_namespace n WHERE n.nspname = $1`
	readSchemaVersion = `SELECT version FROM convlog`
	// lockCreation makes creations of all logs of a database wait for each other, until
	// their transactions end.
	lockCreation = `SELECT pg_advisory_xact_lock(hashtextextended('convlog migration', 0))`
)

// prepare checks the server and the schema, and creates the tables if the store may write.
func (s *Store) prepare(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return s.failure(err)
	}
	defer conn.Release()
	var server int // its version, as 150018
	var pid uint32
	var fsync, database string
	if err := conn.QueryRow(ctx, findServer).Scan(&server, &pid, &fsync, &database); err != nil {
		return s.failure(err)
	}
	switch {
	case server < oldestServer:
		return fmt.Errorf("%w: PostgreSQL %d is too old: use version 14 or later", ErrForeign, server/10000)
	case pid != conn.Conn().PgConn().PID():
		return fmt.Errorf("%w: a connection pooler answers, which loses locks and notifications: give the address of the server itself", ErrForeign)
	case fsync == "off" && !s.options.ReadOnly && !s.assumeSynced:
		return fmt.Errorf("%w: the server runs with fsync=off, so a power loss may damage it: turn fsync on, or add assume_synced=true", ErrForeign)
	}
	found, err := s.inspect(ctx, conn, database)
	if err != nil || found {
		return err
	}
	return s.create(ctx, conn, database)
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// inspect reports whether the schema has the tables. It has none if it is missing or empty.
func (s *Store) inspect(ctx context.Context, q querier, database string) (found bool, err error) {
	var tables, version int
	var marked, usable bool
	found, err = s.scan(q.QueryRow(ctx, findSchema, s.schema), []any{&tables, &marked, &usable})
	if found && s.options.MustCreate {
		return false, fmt.Errorf("%w: schema %q of database %q", ErrExists, s.schema, database)
	}
	if !found || tables == 0 {
		return false, err
	}
	if !usable {
		return false, fmt.Errorf("%w: permission denied for schema %s", ErrDenied, s.schema)
	}
	if !marked {
		return false, fmt.Errorf("%w: schema %q of database %q has tables of another program: name another one with schema=NAME", ErrForeign, s.schema, database)
	}
	if found, err = s.scan(q.QueryRow(ctx, readSchemaVersion), []any{&version}); err != nil {
		return false, fmt.Errorf("read the version of the schema: %w", err)
	}
	if !found || version < 1 {
		return false, fmt.Errorf("%w: table convlog of schema %q has no version", ErrForeign, s.schema)
	}
	if version != schemaVersion {
		return false, &event.VersionError{What: "postgres schema", Got: version, Max: schemaVersion}
	}
	return true, nil
}

// create creates the tables in one transaction. A store that may only read changes
// nothing.
func (s *Store) create(ctx context.Context, conn *pgxpool.Conn, database string) error {
	if s.options.ReadOnly || s.options.MustExist {
		return fmt.Errorf("%w: schema %q of database %q", ErrNoLog, s.schema, database)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return s.failure(err)
	}
	t := transaction{s, ctx, tx}
	if err = s.createIn(t, database); err != nil {
		t.rollback()
	} else {
		err = s.failure(tx.Commit(ctx))
	}
	return wrap(fmt.Sprintf("create the tables of schema %q", s.schema), err)
}

// createIn creates the tables, and the schema if it is missing: a user without the right to
// create schemas may have one.
func (s *Store) createIn(t transaction, database string) error {
	if _, err := t.exec(lockCreation); err != nil {
		return err
	}
	created, err := s.inspect(t.ctx, t.tx, database) // again: another process may have created them
	if err != nil || created {
		return err
	}
	var found bool
	_, err = t.one([]any{&found}, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, s.schema)
	if err != nil {
		return err
	}
	var statements strings.Builder
	if !found {
		statements.WriteString("CREATE SCHEMA " + pgx.Identifier{s.schema}.Sanitize() + ";")
	}
	statements.WriteString(tables + eventTable)
	if s.partitions > 0 {
		statements.WriteString(" PARTITION BY HASH (session)")
	}
	for n := range s.partitions {
		fmt.Fprintf(&statements, ";CREATE TABLE events_%d PARTITION OF events FOR VALUES WITH (MODULUS %d, REMAINDER %d)", n, s.partitions, n)
	}
	statements.WriteString(snapshotIndex)
	if _, err := t.exec(statements.String()); err != nil {
		return err
	}
	_, err = t.exec(`INSERT INTO convlog VALUES ($1, $2)`, schemaVersion, s.partitions)
	return err
}

package postgres

import (
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/pages"
	"github.com/convlog/convlog/internal/relation"
)

// Tables related and blob_users are derived from the lines. The transactions that write the
// lines write them. They have ids of sessions: the ids of stored sessions are unique.
const (
	// relate inserts the relations of a new session beside its row s.
	relate          = `, r AS (INSERT INTO related (name, session) SELECT unnest($9::bytea[]), $1 FROM s)`
	insertRelations = `INSERT INTO related (name, session) SELECT unnest($2::bytea[]), $1::bytea`
	deleteRelations = `DELETE FROM related WHERE session = $1`

	insertUsers = `INSERT INTO blob_users (digest, session, seq) SELECT u.d, $1::bytea, u.n FROM unnest($2::bytea[], $3::bigint[]) u (d, n)
		ON CONFLICT DO NOTHING`
	deleteUsersOf = `DELETE FROM blob_users WHERE session = $1 AND seq = ANY ($2)`
	deleteUsers   = `DELETE FROM blob_users WHERE session = $1`
	listUsers     = `SELECT digest, session, seq FROM blob_users WHERE digest = ANY ($1) AND (digest, session, seq) > ($2, $3, $4)
		ORDER BY digest, session, seq LIMIT $5`

	firstID = `SELECT e.id FROM sessions s JOIN events e ON e.session = s.key AND e.seq = s.first WHERE s.id = $1`
	// listRelated looks up the row of each session by its id: see listSessions.
	listRelated = `SELECT ` + listColumns + ` FROM
		(SELECT DISTINCT session FROM related WHERE name = ANY ($3) AND session >= $1 AND session <> $4 ORDER BY session LIMIT $2) r
		CROSS JOIN LATERAL (SELECT * FROM sessions WHERE id = r.session OFFSET 0) s ORDER BY s.id`
)

// List implements eventlog.Lister. Ids are compared byte by byte.
func (s *Store) List(ctx context.Context, part eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		s.list(ctx, part.After, max(part.Prefix, part.After), func(from []byte, rows int64, after []byte) (string, []any) {
			return listSessions, []any{from, rows, after}
		}, func(info eventlog.SessionInfo, err error) bool {
			return (err != nil || part.Has(info.ID)) && yield(info, err)
		})
	}
}

// Related implements eventlog.Relater.
func (s *Store) Related(ctx context.Context, session string) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		var id [16]byte
		_, err := s.one(ctx, []any{&id}, firstID, []byte(session))
		if err != nil {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		var names [][]byte
		for _, name := range relation.To(session, id) {
			names = append(names, []byte(name))
		}
		s.list(ctx, "", "", func(from []byte, rows int64, after []byte) (string, []any) {
			return listRelated, []any{from, rows, names, after}
		}, yield)
	}
}

// BlobUsers implements eventlog.BlobIndex.
func (s *Store) BlobUsers(ctx context.Context, digests []event.Digest) iter.Seq2[eventlog.BlobUser, error] {
	return func(yield func(eventlog.BlobUser, error) bool) {
		for some := range slices.Chunk(digests, pages.MaxRows) {
			if !s.usersOf(ctx, some, yield) {
				return
			}
		}
	}
}

// usersOf yields the users of some blobs. It returns false after an error, or if the caller wants no more.
func (s *Store) usersOf(ctx context.Context, digests []event.Digest, yield func(eventlog.BlobUser, error) bool) bool {
	var sums [][]byte
	for _, d := range digests {
		sum, err := digestBytes(d)
		if err != nil {
			yield(eventlog.BlobUser{}, err)
			return false
		}
		sums = append(sums, sum)
	}
	for last := (userRow{}); ; {
		page, err := s.users(ctx, sums, last)
		if err != nil {
			yield(eventlog.BlobUser{}, err)
			return false
		}
		for _, last = range page {
			if !yield(eventlog.BlobUser{Digest: digestOf(last.digest), Session: string(last.session), Seq: last.seq}, nil) {
				return false
			}
		}
		if len(page) < pages.MaxRows {
			return true
		}
	}
}

// userRow is a row of table blob_users.
type userRow struct {
	digest, session []byte
	seq             int64
}

// users reads rows of blobs after the row last.
func (s *Store) users(ctx context.Context, digests [][]byte, last userRow) ([]userRow, error) {
	pool, err := s.pool(ctx)
	if err != nil {
		return nil, err
	}
	if last.digest == nil {
		last.digest, last.session = []byte{}, []byte{}
	}
	rows, err := pool.Query(ctx, listUsers, digests, last.digest, last.session, last.seq, pages.MaxRows)
	if err != nil {
		return nil, s.failure(err)
	}
	page, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (u userRow, err error) {
		err = row.Scan(&u.digest, &u.session, &u.seq)
		return u, err
	})
	return page, s.failure(err)
}

// relationsOf are the relations of a session with that first event.
func relationsOf(first *event.Event) (names [][]byte) {
	for _, name := range relation.Of(first) {
		names = append(names, []byte(name))
	}
	return names
}

// blobsOf are the blobs of the events, and the seqs of the events.
func blobsOf(events []event.Event) (digests [][]byte, seqs []int64) {
	for i := range events {
		for _, d := range events[i].Blobs() {
			if sum, err := digestBytes(d); err == nil {
				digests, seqs = append(digests, sum), append(seqs, events[i].Seq)
			}
		}
	}
	return digests, seqs
}

// use inserts the blobs of the events of a session.
func (t transaction) use(session string, events []event.Event) error {
	digests, seqs := blobsOf(events)
	if len(digests) == 0 {
		return nil
	}
	_, err := t.exec(insertUsers, []byte(session), digests, seqs)
	return err
}

// reuse replaces the blobs of the events of a session.
func (t transaction) reuse(session string, events []event.Event) error {
	var seqs []int64
	for i := range events {
		seqs = append(seqs, events[i].Seq)
	}
	if _, err := t.exec(deleteUsersOf, []byte(session), seqs); err != nil {
		return err
	}
	return t.use(session, events)
}

var (
	_ eventlog.Lister    = (*Store)(nil)
	_ eventlog.Relater   = (*Store)(nil)
	_ eventlog.BlobIndex = (*Store)(nil)
)

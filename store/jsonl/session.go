package jsonl

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/folder"
)

var errName = errors.New("the file name does not match the session id")

// Sessions implements eventlog.Store. It reads the start and the end of every file.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return s.List(ctx, eventlog.Part{})
}

// List implements eventlog.Lister. It reads the names of all files, and the start and the
// end of the files of the part.
func (s *Store) List(ctx context.Context, part eventlog.Part) iter.Seq2[eventlog.SessionInfo, error] {
	return s.list(ctx, part, nil)
}

// ListKnown is Sessions for a caller that derives the description of a session from its row of the
// catalog: known gets the row and the session's version. If it returns false, the start and the
// end of the file are read. The store calls it from several goroutines, and yields the sessions in
// the order of the catalog.
func (s *Store) ListKnown(ctx context.Context, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) iter.Seq2[eventlog.SessionInfo, error] {
	return s.list(ctx, eventlog.Part{}, known)
}

func (s *Store) list(ctx context.Context, part eventlog.Part, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		if err := s.beginCall("list", s.dir); err != nil {
			yield(eventlog.SessionInfo{}, err)
			return
		}
		defer s.endCall()
		rows, err := s.sessionFiles()
		if err != nil {
			yield(eventlog.SessionInfo{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		rows = slices.DeleteFunc(rows, func(row sessionFile) bool { return !part.Has(row.id) })
		buffers := make([][]byte, runtime.GOMAXPROCS(0))
		for some, stored := range s.parts(rows, known != nil) {
			for _, listed := range s.sessionInfos(ctx, some, buffers, stored, known) {
				if listed.failed != nil {
					yield(eventlog.SessionInfo{}, listed.failed)
					return
				}
				if !errors.Is(listed.info.Err, eventlog.ErrNotFound) && !yield(listed.info, nil) {
					return
				}
			}
		}
	}
}

// parts divides the files of a listing into parts that are read at once, with the rows of the
// catalog.
func (s *Store) parts(rows []sessionFile, catalogued bool) iter.Seq2[[]sessionFile, groupRows] {
	return func(yield func([]sessionFile, groupRows) bool) {
		if _, err := s.fs.Stat(catalogDir); err != nil || !catalogued {
			for some := range slices.Chunk(rows, listAhead) {
				if !yield(some, nil) {
					return
				}
			}
			return
		}
		groups := make([][]sessionFile, math.MaxUint8+1)
		for _, row := range rows {
			group := s.CatalogGroup(row.id)
			groups[group] = append(groups[group], row)
		}
		for group, all := range groups {
			if len(all) == 0 {
				continue
			}
			stored := s.readRows(uint8(group))
			for some := range slices.Chunk(all, listAhead) {
				if !yield(some, stored) {
					return
				}
			}
		}
	}
}

// listAhead is the number of sessions that a listing reads at once.
const listAhead = 16

// listed is a session of a listing, or the error that ends it.
type listed struct {
	info   eventlog.SessionInfo
	failed error
}

// sessionInfos reads sessions with a worker for each buffer.
func (s *Store) sessionInfos(ctx context.Context, rows []sessionFile, buffers [][]byte, stored groupRows, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) []listed {
	all := make([]listed, len(rows))
	var workers sync.WaitGroup
	for w := range min(len(buffers), len(rows)) {
		workers.Go(func() {
			for i := w; i < len(rows); i += len(buffers) {
				if all[i].failed = s.alive(ctx); all[i].failed != nil {
					return
				}
				ok := false
				if data, has := stored[rows[i].id]; has && fileOf(rows[i].id) == rows[i].name {
					all[i].info, ok = s.knownInfo(rows[i], data, known)
				}
				if !ok {
					all[i].info = s.sessionInfo(ctx, rows[i], &buffers[w])
				}
			}
		})
	}
	workers.Wait()
	return all
}

// knownInfo asks known for a session that has a row of the catalog.
func (s *Store) knownInfo(row sessionFile, data []byte, known func(eventlog.CatalogRow) (eventlog.SessionInfo, bool)) (eventlog.SessionInfo, bool) {
	file, err := s.fs.Stat(row.name)
	if err != nil {
		return eventlog.SessionInfo{}, false
	}
	info, ok := known(eventlog.CatalogRow{Session: row.id, At: s.versionOf(row.id, file), Data: data})
	return info, ok && file.Size == info.Bytes // else its end is torn or damaged
}

// sessionFile is a file name and the session id that it should hold.
type sessionFile struct{ id, name string }

// sessionFiles returns the session files, ordered by session id.
func (s *Store) sessionFiles() ([]sessionFile, error) {
	entries, err := s.fs.ReadDir(".")
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rows := make([]sessionFile, 0, len(entries))
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), extension)
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		id, ok := folder.SessionID(name)
		if !ok {
			id = s.idInFirstLine(entry.Name())
		}
		rows = append(rows, sessionFile{id: id, name: entry.Name()})
	}
	slices.SortFunc(rows, func(a, b sessionFile) int {
		return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.name, b.name))
	})
	return rows, nil
}

// idInFirstLine returns the session id in a file's first line, or "" if the line is
// unreadable.
func (s *Store) idInFirstLine(name string) string {
	r := &reader{store: s, name: name, source: source{path: s.path(name)}}
	if r.open() != nil {
		return ""
	}
	defer r.close()
	line, _, err := r.lineAt(0, r.end)
	if err != nil {
		return ""
	}
	e, _ := r.parse(line)
	return e.SessionID
}

// sessionInfo reads a session's first and last event. If they look damaged, it tries
// again with a scan for holes: a hole may have taken them. A file with damage only is a damaged
// session.
func (s *Store) sessionInfo(ctx context.Context, row sessionFile, scratch *[]byte) eventlog.SessionInfo {
	info, torn, err := s.readInfo(row, false, scratch)
	if errors.Is(err, eventlog.ErrCorrupt) {
		info, torn, err = s.readInfo(row, true, scratch)
	}
	info.Err = err
	if torn {
		info.Tail = s.damagedTail(ctx, row)
	}
	if info.Tail != nil && errors.Is(err, eventlog.ErrNotFound) {
		info.Err, info.Tail = info.Tail, nil
	}
	return info
}

// damagedTail returns the damage of a torn tail that looks like finished writes; nil for the
// rest of an unfinished one. While a writer has the lock, the tail is its unfinished append.
func (s *Store) damagedTail(ctx context.Context, row sessionFile) error {
	r := s.tailReader(row)
	r.noWait = true
	defer r.close()
	if r.open() != nil {
		return nil // a reader of the session reports the error
	}
	t, err := r.lockedTail(ctx)
	if err != nil || !t.Whole {
		return nil
	}
	return &eventlog.CorruptError{Session: row.id, Path: t.Path, Offset: t.Offset, Cause: fmt.Errorf("%w: readers do not see %d bytes", errTail, t.Bytes)}
}

var errTail = errors.New("the last append is damaged, or follows a hole")

// readInfo reads a session's first and last event. torn means that bytes follow the last
// complete append.
func (s *Store) readInfo(row sessionFile, thorough bool, scratch *[]byte) (info eventlog.SessionInfo, torn bool, err error) {
	info = eventlog.SessionInfo{ID: row.id}
	r := &reader{store: s, name: row.name, checkHoles: thorough, source: source{session: row.id, path: s.path(row.name), scratch: scratch}}
	if row.id != "" && fileOf(row.id) != row.name {
		return info, false, r.corrupt(0, 0, fmt.Errorf("%w: %q", errName, row.id))
	}
	if err := r.open(); err != nil {
		return info, false, err
	}
	defer r.close()
	torn = r.info.Size > r.end && r.damage == nil
	if r.end == 0 {
		return info, torn, eventlog.ErrNotFound
	}
	info.Bytes = r.end
	return info, torn, r.readEnds(&info)
}

// readEnds reads the first append, and the last line unless finding the end has read
// it.
func (r *reader) readEnds(info *eventlog.SessionInfo) error {
	if r.session == "" {
		return r.corrupt(0, 0, errName)
	}
	if err := r.readFirstAppend(info); err != nil {
		return err
	}
	if info.Last = r.last; info.Last.Seq > 0 {
		return r.damage
	}
	l := backwardLines{file: r.file, end: r.end, chunk: page, buffer: r.borrow()}
	defer r.giveBack(&l.buffer)
	line, at, err := l.line()
	if info.Last, err = r.checkCopy(line, at, 0, err); err != nil {
		return r.corrupt(at, 0, err)
	}
	return r.damage
}

// readFirstAppend checks all lines of the first append and stores the first one in
// info.
func (r *reader) readFirstAppend(info *eventlog.SessionInfo) error {
	lines := forwardLines{file: r.file, end: r.end, chunk: page, buffer: r.borrow()}
	defer r.giveBack(&lines.buffer)
	for more, due := -1, int64(0); more != 0; {
		line, at, err := lines.line()
		check := r.check
		if at == 0 {
			check = r.checkCopy
		}
		e, err := check(line, at, due, err)
		if err == nil && more > 0 && e.More() != more-1 {
			err = errUnfinished
		}
		if err != nil {
			return r.corrupt(at, due, err)
		}
		if at == 0 {
			info.First = e
		}
		more, due = e.More(), e.Seq+1
	}
	return nil
}

// Version implements eventlog.Versioner with one stat. While an append of this process
// is written but not acknowledged, the version differs from the version after it. So
// watchers see the change.
func (s *Store) Version(ctx context.Context, session string) (uint64, error) {
	if err := s.beginCall("inspect session", session); err != nil {
		return 0, err
	}
	defer s.endCall()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	name := fileOf(session)
	info, err := s.fs.Stat(name)
	if isAbsent(err) || err == nil && info.Size == 0 {
		return 0, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
	}
	if err != nil {
		return 0, fmt.Errorf("inspect session %q: %w", session, err)
	}
	return s.versionOf(session, info), nil
}

// versionOf is the version of a session with a file.
func (s *Store) versionOf(session string, info Info) uint64 {
	v, _ := s.cache.view(session)
	inFlight := v.inode == info.Inode && v.visible < v.pending
	var b [25]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(info.Size))
	binary.LittleEndian.PutUint64(b[8:], uint64(info.ModTime.UnixNano()))
	binary.LittleEndian.PutUint64(b[16:], info.Inode)
	if inFlight {
		b[24] = 1
	}
	hash := fnv.New64a()
	hash.Write(b[:])
	return hash.Sum64()
}

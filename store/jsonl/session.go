package jsonl

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

var errName = errors.New("the file's name is not that of its session")

// Sessions implements eventlog.Store: it reads the two ends of every file.
func (s *Store) Sessions(ctx context.Context) iter.Seq2[eventlog.SessionInfo, error] {
	return func(yield func(eventlog.SessionInfo, error) bool) {
		rows, err := s.sessionFiles()
		if err != nil {
			yield(eventlog.SessionInfo{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		for _, row := range rows {
			if err := ctx.Err(); err != nil {
				yield(eventlog.SessionInfo{}, err)
				return
			}
			info, err := s.sessionInfo(row)
			if errors.Is(err, eventlog.ErrNotFound) {
				continue
			}
			info.Err = err
			if !yield(info, nil) {
				return
			}
		}
	}
}

// row is a file of the directory and the session it should be of.
type sessionFile struct{ id, name string }

// rows lists the session files ordered by session id.
func (s *Store) sessionFiles() ([]sessionFile, error) {
	if err := s.usable("list", s.dir); err != nil {
		return nil, err
	}
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
		id, ok := unescape(name)
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

// claimed is the session that a file's first line names; empty if that cannot
// be read.
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

// describe reads a session's first and last event. Where they look damaged a
// hole may have taken them, which only a thorough look tells.
func (s *Store) sessionInfo(row sessionFile) (eventlog.SessionInfo, error) {
	info, err := s.readInfo(row, false)
	if errors.Is(err, eventlog.ErrCorrupt) {
		return s.readInfo(row, true)
	}
	return info, err
}

func (s *Store) readInfo(row sessionFile, thorough bool) (eventlog.SessionInfo, error) {
	info := eventlog.SessionInfo{ID: row.id}
	r := &reader{store: s, name: row.name, checkHoles: thorough, source: source{session: row.id, path: s.path(row.name)}}
	if row.id != "" && escape(row.id)+extension != row.name {
		return info, r.corrupt(0, 0, fmt.Errorf("%w: %q", errName, row.id))
	}
	if err := r.open(); err != nil {
		return info, err
	}
	defer r.close()
	if r.end == 0 {
		return info, eventlog.ErrNotFound
	}
	info.Bytes = r.end
	return info, r.readEnds(&info)
}

// ends reads the first line, and the last if finding the end did not.
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
	l := backward{file: r.file, end: r.end, chunk: page}
	line, at, err := l.line()
	if info.Last, err = r.check(line, at, 0, err); err != nil {
		return r.corrupt(at, 0, err)
	}
	return r.damage
}

// firstAppend reads the first line, and the others of its append: a session
// that has not all of them is none.
func (r *reader) readFirstAppend(info *eventlog.SessionInfo) error {
	lines := forward{file: r.file, end: r.end, chunk: page}
	for more, due := -1, int64(0); more != 0; {
		line, at, err := lines.line()
		e, err := r.check(line, at, due, err)
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

// versions differ between processes: an answer is only ever compared with one
// of the same store.
var versions = maphash.MakeSeed()

// Version implements eventlog.Versioner by one stat. An append that this
// process has written and not yet acknowledged does not count, so that it
// changes the answer when it is.
func (s *Store) Version(ctx context.Context, session string) (uint64, error) {
	if err := s.usable("inspect session", session); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	name := escape(session) + extension
	info, err := s.fs.Stat(name)
	if isAbsent(err) || err == nil && info.Size == 0 {
		return 0, fmt.Errorf("session %q: %w", session, eventlog.ErrNotFound)
	}
	if err != nil {
		return 0, fmt.Errorf("inspect session %q: %w", session, err)
	}
	v, _ := s.cache.view(session)
	inFlight := v.inode == info.Inode && v.visible < v.pending
	var b [25]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(info.Size))
	binary.LittleEndian.PutUint64(b[8:], uint64(info.ModTime.UnixNano()))
	binary.LittleEndian.PutUint64(b[16:], info.Inode)
	if inFlight {
		b[24] = 1
	}
	return maphash.Bytes(versions, b[:]), nil
}

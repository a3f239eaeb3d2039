package jsonl

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"

	"github.com/convlog/convlog/eventlog"
)

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

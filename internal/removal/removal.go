// Package removal keeps marks of sessions in a store, for imports: of removed sessions, which
// an import leaves out, and of sessions with erased events, whose copies an import looks for.
// A mark is a salt, a dot, and 32 hex digits of a hash of the
// salt and the id: the ids of removed sessions are not stored. The marks of a store have one salt,
// and marks that a copy brought have the salt of their store.
//
// The mark of a removed session says nothing about a session that exists: a session may be
// created again. The hash of a session with erased events is made of "erased", a NUL, and the id.
package removal

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/engine"
)

// hash is a part of the HMAC-SHA-256 of an id, with the salt as the key.
type hash [16]byte

// Marks are the marks of a store.
type Marks struct {
	own    string // the salt of new marks
	hashes map[string]map[hash]struct{}
}

// Load reads the marks of a log's store. A store without the ability has none.
func Load(ctx context.Context, log *eventlog.Log) (*Marks, error) {
	m := &Marks{hashes: map[string]map[hash]struct{}{}}
	for mark, err := range stored(ctx, log) {
		if err != nil {
			return nil, fmt.Errorf("read the marks of removed sessions: %w", err)
		}
		m.add(mark)
	}
	return m, nil
}

// stored yields the marks of a log's store.
func stored(ctx context.Context, log *eventlog.Log) iter.Seq2[string, error] {
	keeper, ok := eventlog.As[eventlog.RemovalKeeper](log.Store())
	if !ok {
		return func(func(string, error) bool) {}
	}
	return keeper.Removals(ctx)
}

// add adds a mark, and reports whether it is new. It ignores a damaged mark.
func (m *Marks) add(mark string) bool {
	salt, text, _ := strings.Cut(mark, ".")
	var h hash
	if n, err := hex.Decode(h[:], []byte(text)); salt == "" || len(text) != hex.EncodedLen(len(h)) || n < len(h) || err != nil {
		return false
	}
	if m.own == "" {
		m.own = salt
	}
	if m.hashes[salt] == nil {
		m.hashes[salt] = map[hash]struct{}{}
	}
	_, had := m.hashes[salt][h]
	m.hashes[salt][h] = struct{}{}
	return !had
}

// IsEmpty reports whether there are no marks.
func (m *Marks) IsEmpty() bool { return len(m.hashes) == 0 }

// Has reports whether a session has a mark.
func (m *Marks) Has(session string) bool {
	for salt, hashes := range m.hashes {
		if _, ok := hashes[hashOf(salt, session)]; ok {
			return true
		}
	}
	return false
}

func hashOf(salt, session string) (h hash) {
	mac := hmac.New(sha256.New, []byte(salt))
	mac.Write([]byte(session))
	copy(h[:], mac.Sum(nil))
	return h
}

// Erased reports whether a session has the mark of a session with erased events.
func (m *Marks) Erased(session string) bool { return m.Has(erasedName(session)) }

// erasedName is hashed for a session with erased events. No id has a NUL.
func erasedName(session string) string { return "erased\x00" + session }

// NoteErased stores a mark for each of the sessions, which have erased events. The caller holds the
// exclusive store lock, under ctx.
func NoteErased(ctx context.Context, log *eventlog.Log, sessions ...string) error {
	names := make([]string, len(sessions))
	for i, session := range sessions {
		names[i] = erasedName(session)
	}
	return note(ctx, log, names)
}

// Note stores a mark for each of the sessions that exist, before they are removed. The caller
// holds the exclusive store lock, under ctx.
func Note(ctx context.Context, log *eventlog.Log, sessions []string) error {
	var all []string
	for _, session := range sessions {
		if _, err := log.Head(ctx, session); !errors.Is(err, eventlog.ErrNotFound) {
			all = append(all, session)
		}
	}
	return note(ctx, log, all)
}

// note stores the marks of names.
func note(ctx context.Context, log *eventlog.Log, names []string) error {
	if len(names) == 0 {
		return nil
	}
	m, err := Load(ctx, log)
	if err != nil {
		return err
	}
	if m.own == "" {
		m.own = rand.Text()
	}
	var marks []string
	for _, name := range names {
		h := hashOf(m.own, name)
		if mark := m.own + "." + hex.EncodeToString(h[:]); m.add(mark) {
			marks = append(marks, mark)
		}
	}
	return put(ctx, log, marks)
}

// Copy stores the marks of src in dst.
func Copy(ctx context.Context, dst, src *eventlog.Log) error {
	has, err := Load(ctx, dst)
	if err != nil {
		return err
	}
	var marks []string
	for mark, err := range stored(ctx, src) {
		if err != nil {
			return fmt.Errorf("read the marks of removed sessions: %w", err)
		}
		if has.add(mark) {
			marks = append(marks, mark)
		}
	}
	if len(marks) == 0 {
		return nil
	}
	return engine.Of(dst).Locked(ctx, true, func(ctx context.Context) error { return put(ctx, dst, marks) })
}

func put(ctx context.Context, log *eventlog.Log, marks []string) error {
	keeper, ok := eventlog.As[eventlog.RemovalKeeper](log.Store())
	if !ok || len(marks) == 0 {
		return nil
	}
	return keeper.PutRemovals(ctx, marks)
}

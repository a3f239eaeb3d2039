package jsonl

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Rewrite implements eventlog.Eraser: a new file with the replaced and the
// added lines takes the name of the old one. Readers that are under way finish
// in the old one. Saved torn tails and kept copies of the session go, as they
// may hold what is replaced, and so do the temporary files of blobs. They go
// first, and durably: whoever finds the new lines, after a crash as well, has
// nothing more to erase.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	h, err := s.begin(ctx, "rewrite session", session)
	if err != nil {
		return err
	}
	defer s.end(h)
	if err := h.claim(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if err := h.compare(expect, add); err != nil {
		return err
	}
	temp := h.rewriteName()
	if err := h.rewriteTo(ctx, temp, replace, add); err != nil {
		_ = s.fs.Remove(temp)
		return fmt.Errorf("rewrite session %q: %w", session, err)
	}
	err = errors.Join(h.removeTorn(), s.removeSpools())
	if err == nil {
		err = s.fs.Rename(temp, h.name)
	}
	if err != nil {
		_ = s.fs.Remove(temp)
		return fmt.Errorf("rewrite session %q: %w", session, err)
	}
	head := h.head
	if err := errors.Join(s.fs.SyncDir("."), h.drop()); err != nil {
		return &eventlog.UnknownOutcomeError{Session: session, Head: head, Cause: err}
	}
	return nil
}

// claim locks a session that exists.
func (h *handle) claim(ctx context.Context) error {
	if err := h.lockPresent(ctx); err != nil {
		return err
	}
	err := h.refresh()
	if err == nil && h.size == 0 {
		err = fmt.Errorf("session %q: %w", h.session, eventlog.ErrNotFound)
	}
	if err != nil {
		h.unlock()
	}
	return err
}

// lockPresent locks a session that has a file.
func (h *handle) lockPresent(ctx context.Context) error {
	err := h.lock(ctx, false)
	if errors.Is(err, errAbsent) {
		return fmt.Errorf("session %q: %w", h.session, eventlog.ErrNotFound)
	}
	return err
}

// rewriteTo writes the session's new lines to the file temp, durably.
func (h *handle) rewriteTo(ctx context.Context, temp string, replace, add []event.Event) (err error) {
	tail := appendLines(nil, add)
	if len(tail) > maxAppend {
		return fmt.Errorf("%w: over %d bytes at once", event.ErrInvalidSize, maxAppend)
	}
	file, err := h.store.fs.Open(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	if err := h.copyLines(ctx, file, replace); err != nil {
		return err
	}
	if err := writeAll(file, tail); err != nil {
		return err
	}
	return file.Sync()
}

// copyLines copies the session, checked, with the replacements.
func (h *handle) copyLines(ctx context.Context, to io.Writer, replace []event.Event) error {
	fresh := make(map[int64][]byte, len(replace))
	for i := range replace {
		fresh[replace[i].Seq] = replace[i].Line()
	}
	lines := forward{file: h.file, end: h.size}
	var out []byte
	for due := int64(0); ; due++ {
		line, at, err := lines.line()
		if errors.Is(err, io.EOF) {
			break
		}
		e, err := h.check(line, at, due, err)
		if err != nil {
			return h.corrupt(at, due, err)
		}
		if other, ok := fresh[e.Seq]; ok {
			line = other
			delete(fresh, e.Seq)
		}
		due = e.Seq
		if out = append(append(out, line...), '\n'); len(out) < largestChunk {
			continue
		}
		if err := errors.Join(ctx.Err(), writeAll(to, out)); err != nil {
			return err
		}
		out = out[:0]
	}
	for seq := range fresh {
		return fmt.Errorf("replace seq %d: %w", seq, eventlog.ErrEventNotFound)
	}
	return writeAll(to, out)
}

func writeAll(to io.Writer, b []byte) error {
	n, err := to.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// RemoveSession implements eventlog.Eraser. What was saved beside the session
// goes first, and durably, so that it is not left for another one of that name.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	h, err := s.begin(ctx, "remove session", session)
	if err != nil {
		return err
	}
	defer s.end(h)
	if err := h.lockPresent(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if err := h.compareAlone(expect); err != nil {
		return err
	}
	_ = s.fs.Remove(h.rewriteName()) // as a rule there is none
	if err = h.removeTorn(); err == nil {
		err = s.fs.Remove(h.name)
	}
	if err != nil {
		return fmt.Errorf("remove session %q: %w", session, err)
	}
	head := h.head
	if err := errors.Join(s.fs.SyncDir("."), h.drop()); err != nil {
		return &eventlog.UnknownOutcomeError{Session: session, Head: head, Cause: err}
	}
	return nil
}

// compareAlone is compare for a session that is to be removed. One that is damaged
// has no head to compare; if its file is another session's it is left.
func (h *handle) compareAlone(expect event.Head) error {
	err := h.refresh()
	switch {
	case errors.Is(err, eventlog.ErrCorrupt) && expect.IsZero():
		if other := h.store.claimed(h.name); other == "" || other == h.session {
			return nil
		}
		return err
	case err != nil:
		return err
	case h.size == 0:
		return fmt.Errorf("session %q: %w", h.session, eventlog.ErrNotFound)
	}
	h.cut = nil // what is owed goes with the session
	return h.compare(expect, nil)
}

// rewriteName is the file that a rewrite prepares.
func (h *handle) rewriteName() string { return strings.TrimSuffix(h.name, extension) + rewriteSuffix }

// removeTorn removes the saved torn tails and the kept copies of the session,
// durably.
func (h *handle) removeTorn() error {
	entries, err := h.store.fs.ReadDir(".")
	if err != nil {
		return err
	}
	base := strings.TrimSuffix(h.name, extension)
	return h.store.removeNames(".", entries, func(name string) bool {
		rest, ok := strings.CutPrefix(name, base)
		offset, torn := strings.CutPrefix(rest, tornInfix)
		number, kept := strings.CutPrefix(rest, damagedInfix)
		return ok && (torn && isTorn(offset) || kept && isKept(number))
	})
}

// removeSpools removes the temporary files of blobs, durably. They are
// leftovers, as nobody puts a blob while a session is rewritten.
func (s *Store) removeSpools() error {
	entries, err := s.fs.ReadDir(blobDir)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.removeNames(blobDir, entries, func(name string) bool { return strings.HasPrefix(name, tempPrefix) })
}

// removeNames removes the files of a directory that are picked by name,
// durably.
func (s *Store) removeNames(dir string, entries []fs.DirEntry, pick func(name string) bool) error {
	var errs []error
	found := false
	for _, entry := range entries {
		if pick(entry.Name()) {
			found = true
			errs = append(errs, s.fs.Remove(path.Join(dir, entry.Name())))
		}
	}
	if found {
		errs = append(errs, s.fs.SyncDir(dir))
	}
	return errors.Join(errs...)
}

// isTorn reports whether rest is what follows ".torn-" in the name of a torn
// tail: an offset, alone or with the suffix of a file being written or of one
// that an adoption settled. Names of other sessions end in ".jsonl".
func isTorn(rest string) bool {
	offset, suffix, suffixed := strings.Cut(rest, ".")
	if _, err := strconv.ParseUint(offset, 10, 63); err != nil {
		return false
	}
	if !suffixed || "."+suffix == tempSuffix {
		return true
	}
	_, err := hex.DecodeString(suffix)
	return err == nil && len(suffix) == settledLen
}

// isKept is isTorn for what follows ".damaged-" in the name of a kept copy.
func isKept(rest string) bool {
	number, suffix, suffixed := strings.Cut(rest, ".")
	_, err := strconv.ParseUint(number, 10, 63)
	return err == nil && (!suffixed || "."+suffix == tempSuffix)
}

package jsonl

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// RemoveSession implements eventlog.Eraser. It first removes saved tails, backup
// copies and the row of the catalog durably: a later session with the same id must not
// find them.
func (s *Store) RemoveSession(ctx context.Context, session string, expect event.Head) error {
	h, err := s.beginWrite(ctx, "remove session", session)
	if err != nil {
		return err
	}
	defer s.endWrite(h)
	if err := h.lockFile(ctx); err != nil {
		return err
	}
	defer h.unlock()
	if err := h.compareForRemoval(expect); err != nil {
		return err
	}
	_ = s.fs.Remove(h.rewriteName()) // rarely exists
	if err = errors.Join(h.removeSaved(), h.removeRow()); err == nil {
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

// compareForRemoval compares the head of a session that is to be removed. A damaged
// session has no head: expect must be zero. If the file holds events of another
// session, it returns the damage and keeps the file.
func (h *handle) compareForRemoval(expect event.Head) error {
	_, err := h.recoverTail()
	switch {
	case errors.Is(err, eventlog.ErrCorrupt) && expect.IsZero():
		if other := h.store.idInFirstLine(h.name); other == "" || other == h.session {
			return nil
		}
		return err
	case err != nil:
		return err
	case h.size == 0:
		return fmt.Errorf("session %q: %w", h.session, eventlog.ErrNotFound)
	}
	h.pendingCut = nil // the pending cut is removed with the session
	return h.compare(expect, nil)
}

// removeSaved removes the saved torn tails and the backup copies of the session,
// durably.
func (h *handle) removeSaved() error {
	base := strings.TrimSuffix(h.name, extension)
	isSaved := func(name string) bool {
		rest, ok := strings.CutPrefix(name, base)
		offset, torn := strings.CutPrefix(rest, tornInfix)
		number, kept := strings.CutPrefix(rest, damagedInfix)
		return ok && (torn && isTailOffset(offset) || kept && isBackupNumber(number))
	}
	names, err := h.store.saved.list(h.store.fs, h.info.ModTime, isSaved)
	if err != nil {
		return err
	}
	return h.store.removeNames(".", names, isSaved)
}

// removeBlobTemps removes the temporary files of blobs, durably. All are leftovers: the
// store lock excludes PutBlob during a rewrite.
func (s *Store) removeBlobTemps() error {
	entries, err := s.fs.ReadDir(blobDir)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.removeNames(blobDir, namesOf(entries), func(name string) bool { return strings.HasPrefix(name, tempPrefix) })
}

// isTailOffset reports whether rest is the part after ".torn-" in the name of a saved
// torn tail: an offset, and for a temporary file or a retired tail a suffix. Names of
// other sessions end in ".jsonl".
func isTailOffset(rest string) bool {
	offset, suffix, suffixed := strings.Cut(rest, ".")
	if _, err := strconv.ParseUint(offset, 10, 63); err != nil {
		return false
	}
	if !suffixed || "."+suffix == tempSuffix {
		return true
	}
	_, err := hex.DecodeString(suffix)
	return err == nil && len(suffix) == retiredDigits
}

// isBackupNumber reports whether rest is the part after ".damaged-" in the name of a
// backup copy.
func isBackupNumber(rest string) bool {
	number, suffix, suffixed := strings.Cut(rest, ".")
	_, err := strconv.ParseUint(number, 10, 63)
	return err == nil && (!suffixed || "."+suffix == tempSuffix)
}

package jsonl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Replace implements eventlog.Salvager. It copies the damaged file to
// <name>.damaged-<n> and renames a new file over it. Readers in progress finish in the
// old file. It returns the path of the copy.
func (s *Store) Replace(ctx context.Context, session string, at uint64, events iter.Seq2[event.Event, error]) (kept string, err error) {
	h, err := s.beginWrite(ctx, "replace session", session)
	if err != nil {
		return "", err
	}
	defer s.endWrite(h)
	if _, err := s.Version(ctx, session); err != nil {
		return "", err
	}
	temp := h.rewriteName()
	if err = s.writeEvents(ctx, temp, events); err == nil {
		kept, err = h.replace(ctx, at, temp)
	}
	var unknown *eventlog.UnknownOutcomeError
	if err != nil && !errors.As(err, &unknown) {
		_ = s.fs.Remove(temp)
		return "", fmt.Errorf("replace session %q: %w", session, err)
	}
	return kept, err
}

// writeEvents writes the events' lines to the file name and syncs it.
func (s *Store) writeEvents(ctx context.Context, name string, events iter.Seq2[event.Event, error]) (err error) {
	file, err := s.fs.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	var out []byte
	for e, err := range events {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if out = append(append(out, e.Line()...), '\n'); len(out) < largestChunk {
			continue
		}
		if err := writeAll(file, out); err != nil {
			return err
		}
		out = out[:0]
	}
	if err := writeAll(file, out); err != nil {
		return err
	}
	return file.Sync()
}

// replace renames temp to the session's file, if the session's version is still at.
func (h *handle) replace(ctx context.Context, at uint64, temp string) (kept string, err error) {
	if err := h.lockFile(ctx); err != nil {
		return "", err
	}
	defer h.unlock()
	now, err := h.store.Version(ctx, h.session)
	if err != nil {
		return "", err
	}
	if now != at {
		return "", &eventlog.ConflictError{Session: h.session}
	}
	h.store.saved.forget()
	name, err := h.backUp(ctx)
	if err == nil {
		err = errors.Join(h.retireSavedTails(), h.removeRow())
	}
	if err == nil {
		err = h.store.fs.Rename(temp, h.name)
	}
	if err != nil {
		return "", err
	}
	kept = h.store.path(name)
	if err := errors.Join(h.store.fs.SyncDir("."), h.drop()); err != nil {
		return kept, &eventlog.UnknownOutcomeError{Session: h.session, Cause: err}
	}
	return kept, nil
}

// damagedInfix separates the name of a session and the number of a backup copy.
const damagedInfix = ".damaged-"

// backUp copies the locked file to a new name, durably, and returns the name.
func (h *handle) backUp(ctx context.Context) (name string, err error) {
	base := strings.TrimSuffix(h.name, extension) + damagedInfix
	for n := 1; ; n++ {
		name = base + strconv.Itoa(n)
		if _, err := h.store.fs.Stat(name); isAbsent(err) {
			break
		} else if err != nil {
			return "", err
		}
	}
	temp := name + tempSuffix
	if err := h.copyTo(ctx, temp); err != nil {
		_ = h.store.fs.Remove(temp)
		return "", fmt.Errorf("copy the damaged file: %w", err)
	}
	if err := h.store.fs.Rename(temp, name); err != nil {
		return "", fmt.Errorf("copy the damaged file: %w", err)
	}
	return name, h.store.fs.SyncDir(".")
}

func (h *handle) copyTo(ctx context.Context, name string) (err error) {
	file, err := h.store.fs.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer closeInto(&err, file)
	buf := make([]byte, largestChunk)
	for at := int64(0); at < h.info.Size; {
		n, err := readFull(h.file, buf[:min(int64(len(buf)), h.info.Size-at)], at)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if err := writeAll(file, buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return file.Sync()
}

// retireSavedTails renames the session's saved torn tails, durably. Otherwise a new
// file that ends at one of their offsets would have a pending cut.
func (h *handle) retireSavedTails() error {
	entries, err := h.store.fs.ReadDir(".")
	if err != nil {
		return err
	}
	prefix := strings.TrimSuffix(h.savedTail(0), "0")
	found := false
	for _, entry := range entries {
		offset, ok := strings.CutPrefix(entry.Name(), prefix)
		if _, err := strconv.ParseUint(offset, 10, 63); !ok || err != nil {
			continue
		}
		b, err := h.store.readAll(entry.Name())
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		settled := entry.Name() + "." + hex.EncodeToString(sum[:])[:retiredDigits]
		if err := h.store.fs.Rename(entry.Name(), settled); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return nil
	}
	return h.store.fs.SyncDir(".")
}

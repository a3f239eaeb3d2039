package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Rewrite implements eventlog.Eraser. It writes a new file with the replaced and added
// lines and renames it over the old one. Readers in progress finish in the old file.
// Before the rename it removes, durably, the session's saved tails and backup copies,
// its row of the catalog and all temporary files of blobs: they may contain the erased data. So when the new
// lines are on disk, the erasure is complete.
func (s *Store) Rewrite(ctx context.Context, session string, expect event.Head, replace, add []event.Event) error {
	h, err := s.beginWrite(ctx, "rewrite session", session)
	if err != nil {
		return err
	}
	defer s.endWrite(h)
	if err := h.lockExisting(ctx); err != nil {
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
	err = errors.Join(h.removeSaved(), s.removeBlobTemps(), h.removeRow())
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

// lockExisting locks a session that has at least one event, and truncates a torn tail.
func (h *handle) lockExisting(ctx context.Context) error {
	if err := h.lockFile(ctx); err != nil {
		return err
	}
	_, err := h.recoverTail()
	if err == nil && h.size == 0 {
		err = fmt.Errorf("session %q: %w", h.session, eventlog.ErrNotFound)
	}
	if err != nil {
		h.unlock()
	}
	return err
}

// lockFile locks a session that has a file.
func (h *handle) lockFile(ctx context.Context) error {
	err := h.lock(ctx, false)
	if errors.Is(err, errAbsent) {
		return fmt.Errorf("session %q: %w", h.session, eventlog.ErrNotFound)
	}
	return err
}

// rewriteTo writes the session's new lines to the file temp and syncs it.
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

// copyLines writes the session's lines, with replacements, and checks each line it
// reads.
func (h *handle) copyLines(ctx context.Context, to io.Writer, replace []event.Event) error {
	fresh := make(map[int64][]byte, len(replace))
	for i := range replace {
		fresh[replace[i].Seq] = replace[i].Line()
	}
	lines := forwardLines{file: h.file, end: h.size}
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

// rewriteName returns the temporary name of a rewritten file.
func (h *handle) rewriteName() string { return strings.TrimSuffix(h.name, extension) + rewriteSuffix }

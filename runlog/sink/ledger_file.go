package sink

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/internal/folder"
)

// ledgerFile is the file of a Ledger, read up to an offset. It is read on under the lock
// of the file, before each write.
type ledgerFile struct {
	file *os.File
	end  int64              // the end of the last line that was read
	last []byte             // this line
	has  map[ulid.ULID]bool // the events that have an entry
}

func (f *ledgerFile) close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// hold calls fn with the lock of the file at path, after it has read the lines that
// others appended.
func (f *ledgerFile) hold(ctx context.Context, path string, fn func() error) (err error) {
	if err := f.open(ctx, path); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flock.Unlock(int(f.file.Fd()))) }()
	if err := f.readOn(); err != nil {
		return err
	}
	return fn()
}

// open locks the file at path. If it is another file than before, it is read from its
// beginning.
func (f *ledgerFile) open(ctx context.Context, path string) error {
	if f.file != nil {
		if err := flock.WaitFor(ctx, f.file); err != nil {
			return err
		}
		if named, err := flock.HasName(f.file, path); named || err != nil {
			return err
		}
		if err := f.file.Close(); err != nil {
			return err
		}
	}
	*f = ledgerFile{has: map[ulid.ULID]bool{}}
	if err := folder.Make(filepath.Dir(path)); err != nil {
		return err
	}
	file, err := flock.Open(ctx, path, 0o600)
	if err != nil {
		return err
	}
	f.file = file
	return folder.Sync(filepath.Dir(path))
}

// readOn reads the lines after f.end. It reads the file from its beginning if the file
// has changed before f.end. The caller holds the lock, so bytes after the last newline
// are the rest of an interrupted write: they are truncated.
func (f *ledgerFile) readOn() error {
	if same, err := f.unchanged(); err != nil {
		return err
	} else if !same {
		*f = ledgerFile{file: f.file, has: map[ulid.ULID]bool{}}
	}
	if _, err := f.file.Seek(f.end, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReader(f.file)
	for {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return f.truncateTail(line)
		}
		if err == nil {
			err = f.line(line)
		}
		if err != nil {
			return err
		}
	}
}

// unchanged reports whether the last line that was read is still at its place.
func (f *ledgerFile) unchanged() (bool, error) {
	now := make([]byte, len(f.last))
	_, err := f.file.ReadAt(now, f.end-int64(len(now)))
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return bytes.Equal(now, f.last), err
}

func (f *ledgerFile) line(line []byte) error {
	var e LedgerEntry
	err := json.Unmarshal(line, &e)
	if err == nil && (e.SessionID == "" || e.EventID.IsZero()) {
		err = errors.New("session_id or event_id is missing")
	}
	if err != nil {
		return fmt.Errorf("%w: line at byte %d: %w", ErrBadLedger, f.end, err)
	}
	f.has[e.EventID] = true
	f.end += int64(len(line))
	f.last = append(f.last[:0], line...)
	return nil
}

// entryBegin is the beginning of every line of a ledger.
const entryBegin = `{"session_id":"`

// truncateTail truncates the bytes after the last newline, if a write of a ledger can have
// left them: the beginning of a line, or NULs after a power loss.
func (f *ledgerFile) truncateTail(tail []byte) error {
	begin := string(bytes.TrimRight(tail, "\x00"))
	if !strings.HasPrefix(begin, entryBegin) && !strings.HasPrefix(entryBegin, begin) {
		return fmt.Errorf("%w: the bytes after byte %d are no entry", ErrBadLedger, f.end)
	}
	if len(tail) == 0 {
		return nil
	}
	return f.file.Truncate(f.end)
}

// add appends a line for each entry that has none, and syncs the file. The lines may
// be of a process that was killed before it could sync them, so it syncs in any case.
// After an error the lines are truncated.
func (f *ledgerFile) add(entries []LedgerEntry) error {
	var lines []byte
	var ids []ulid.ULID
	begin := 0 // of the last line
	for i := range entries {
		if f.has[entries[i].EventID] {
			continue
		}
		line, err := json.Marshal(&entries[i], json.Deterministic(true))
		if err != nil {
			return err
		}
		begin = len(lines)
		lines = append(append(lines, line...), '\n')
		ids = append(ids, entries[i].EventID)
	}
	_, err := f.file.WriteAt(lines, f.end)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		return errors.Join(err, f.file.Truncate(f.end))
	}
	for _, id := range ids {
		f.has[id] = true
	}
	if len(lines) > 0 {
		f.end, f.last = f.end+int64(len(lines)), slices.Clone(lines[begin:])
	}
	return nil
}

package jsonl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/flock"
)

// identityName is the file with the id of the store, in one line.
const identityName = ".id"

// maxIdentity is the length of the longest id that is read, in bytes.
const maxIdentity = 200

var _ eventlog.Identifier = (*Store)(nil)

// StoreID implements eventlog.Identifier with the file <dir>/.id.
func (s *Store) StoreID(ctx context.Context) (id string, err error) {
	if err := s.beginCall("read the id of", s.dir); err != nil {
		return "", err
	}
	defer s.endCall()
	if s.opts.ReadOnly {
		id, err = s.readIdentity()
	} else {
		id, err = s.makeIdentity(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", s.path(identityName), err)
	}
	return id, nil
}

func (s *Store) readIdentity() (id string, err error) {
	file, err := s.fs.Open(identityName, os.O_RDONLY)
	if isAbsent(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer closeInto(&err, file)
	return identityIn(file)
}

// identityIn returns the id in the file, empty if its line is not complete.
func identityIn(file File) (string, error) {
	info, err := file.Stat()
	if err != nil || info.Size > maxIdentity {
		return "", err
	}
	text := make([]byte, info.Size)
	if n, err := file.ReadAt(text, 0); n < len(text) {
		return "", err
	}
	id, whole := strings.CutSuffix(string(text), "\n")
	if !whole {
		return "", nil
	}
	return id, nil
}

// makeIdentity is readIdentity, and makes a missing id. The id is durable when it returns: a
// killed process may have left the file without a sync.
func (s *Store) makeIdentity(ctx context.Context) (id string, err error) {
	if err := s.fs.MakeRoot(); err != nil {
		return "", err
	}
	file, err := s.fs.Open(identityName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return "", err
	}
	defer closeInto(&err, file)
	waiting := s.waitingFile(file)
	if err := flock.Wait(ctx, func() (bool, error) { return waiting.TryLock(true) }); err != nil {
		return "", err
	}
	if id, err = identityIn(file); err == nil && id == "" {
		id = rand.Text()
		err = errors.Join(file.Truncate(0), writeAll(file, []byte(id+"\n")))
	}
	if err == nil {
		err = errors.Join(file.Sync(), s.fs.SyncDir("."))
	}
	return id, err
}

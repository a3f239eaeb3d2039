package sink

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/convlog/convlog/internal/flock"
	"github.com/convlog/convlog/internal/folder"
	"github.com/convlog/convlog/internal/regular"
	"github.com/convlog/convlog/runlog"
)

// OpTreeFolder is the path of a folder with the newest op tree file of each session. It
// may be used concurrently, also by several processes. The folder must not be on a network
// file system.
type OpTreeFolder string

// Path returns the path of the file of a session.
func (d OpTreeFolder) Path(session string) string {
	return filepath.Join(string(d), folder.FileName(session)+opTreeSuffix)
}

// Write replaces the file of the session f.SessionID, and creates the folder if it is
// missing. A reader sees the old file or the new one. The new file is durable when Write
// returns nil. Write waits until no other Write of the session runs, or ctx ends; after an
// error the old file stays, or the new one is not durable yet.
func (d OpTreeFolder) Write(ctx context.Context, f *runlog.OpTreeFile) error {
	path := d.Path(f.SessionID)
	if err := d.write(ctx, path, f); err != nil {
		return fmt.Errorf("write op tree file %s: %w", path, err)
	}
	return nil
}

func (d OpTreeFolder) write(ctx context.Context, path string, f *runlog.OpTreeFile) (err error) {
	if err := folder.Make(string(d)); err != nil {
		return err
	}
	// The lock of the temporary file excludes other writers. A killed writer leaves the
	// file, and the next one truncates it.
	temp, err := flock.Open(ctx, path+".tmp", 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Close()) }()
	err = fill(temp, f)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = folder.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return folder.Sync(string(d))
}

func fill(temp *os.File, f *runlog.OpTreeFile) error {
	if err := temp.Truncate(0); err != nil {
		return err
	}
	if err := f.Write(temp); err != nil {
		return err
	}
	return temp.Sync()
}

// Read returns the op tree that was written last for a session. If there is none, the
// error is fs.ErrNotExist. A file that is damaged, or is the file of another session, is
// an *runlog.OpTreeError.
func (d OpTreeFolder) Read(session string) (*runlog.OpTreeFile, error) {
	path := d.Path(session)
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("read op tree: %w", err)
	}
	defer file.Close()
	f, err := runlog.ReadOpTree(file)
	if bad := (*runlog.OpTreeError)(nil); errors.As(err, &bad) {
		bad.Path = path
		return nil, bad
	}
	if err == nil && f.SessionID != session {
		err = fmt.Errorf("it is the file of session %q", f.SessionID)
	}
	if err != nil {
		return nil, &runlog.OpTreeError{Path: path, Cause: err}
	}
	return f, nil
}

package crashfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/convlog/convlog/store/jsonl"
)

// ErrKilled is the error of every operation of a killed process.
var ErrKilled = errors.New("the process was killed")

// FS is a process that has mounted the disk. It implements jsonl.FS.
type FS struct {
	disk    *Disk
	process int
	killed  bool
	open    map[*File]struct{}
}

var _ jsonl.FS = (*FS)(nil)

// Kill ends the process: it closes the files and releases the locks. Later operations
// fail.
func (f *FS) Kill() {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.kill()
}

func (f *FS) kill() {
	f.killed = true
	for file := range f.open {
		file.close()
	}
}

// MakeRoot implements jsonl.FS. The directory is durable at once.
func (f *FS) MakeRoot() error {
	if _, err := f.Stat("."); err == nil {
		return nil
	}
	return f.do("makeroot", ".", 0, func(Fault) error {
		if d := f.disk; d.names["."] == nil {
			n := d.makeNode(true)
			d.names["."], d.synced["."] = n, n
		}
		return nil
	})
}

// Mkdir implements jsonl.FS.
func (f *FS) Mkdir(name string) error {
	if _, err := f.Stat(name); err == nil {
		return pathError("mkdir", name, fs.ErrExist)
	}
	return f.do("mkdir", name, 0, func(Fault) error {
		n, dir := f.disk.lookup(name)
		if !dir {
			return pathError("mkdir", name, fs.ErrNotExist)
		}
		if n != nil {
			return pathError("mkdir", name, fs.ErrExist)
		}
		f.disk.log(entry{kind: createSynced, name: name, node: f.disk.makeNode(true)})
		return nil
	})
}

// Open implements jsonl.FS.
func (f *FS) Open(name string, flag int) (jsonl.File, error) {
	for {
		file, err := f.openExisting(name, flag)
		if flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist) {
			return asFile(file, err)
		}
		err = f.do("create", name, 0, func(Fault) error {
			n, dir := f.disk.lookup(name)
			if !dir {
				return pathError("open", name, fs.ErrNotExist)
			}
			if n == nil {
				n = f.disk.makeNode(false)
				f.disk.log(entry{kind: createSynced, name: name, node: n})
				file = f.openNode(n, name, flag)
			}
			return nil
		})
		if file != nil && err != nil {
			_ = file.Close()
		}
		if file != nil || err != nil {
			return asFile(file, err)
		}
	}
}

// asFile returns a nil interface for a nil *File.
func asFile(file *File, err error) (jsonl.File, error) {
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (f *FS) openExisting(name string, flag int) (*File, error) {
	f.disk.mu.Lock()
	n, dir := f.disk.lookup(name)
	var err error
	switch {
	case f.killed:
		err = ErrKilled
	case !dir || n == nil:
		err = fs.ErrNotExist
	case flag&os.O_EXCL != 0:
		err = fs.ErrExist
	case n.dir:
		err = syscall.EISDIR
	}
	if err != nil {
		f.disk.mu.Unlock()
		return nil, pathError("open", name, err)
	}
	file := f.openNode(n, name, flag)
	f.disk.mu.Unlock()
	if flag&os.O_TRUNC == 0 {
		return file, nil
	}
	if err := file.Truncate(0); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// openNode returns an open file of a node.
func (f *FS) openNode(n *node, name string, flag int) *File {
	file := &File{fs: f, node: n, name: name, flag: flag}
	n.opens++
	f.open[file] = struct{}{}
	return file
}

// Rename implements jsonl.FS.
func (f *FS) Rename(from, to string) error {
	return f.do("rename", to, 0, func(Fault) error {
		d := f.disk
		n := d.names[from]
		old, dir := d.lookup(to)
		if n == nil || !dir {
			return pathError("rename", from, fs.ErrNotExist)
		}
		d.log(entry{kind: renamed, name: from, to: to, node: n})
		if old != nil {
			d.removeName(old)
		}
		return nil
	})
}

// Remove implements jsonl.FS.
func (f *FS) Remove(name string) error {
	if _, err := f.Stat(name); err != nil {
		return err
	}
	return f.do("remove", name, 0, func(Fault) error {
		n := f.disk.names[name]
		if n == nil {
			return pathError("remove", name, fs.ErrNotExist)
		}
		f.disk.log(entry{kind: removed, name: name, node: n})
		f.disk.removeName(n)
		return nil
	})
}

// Stat implements jsonl.FS.
func (f *FS) Stat(name string) (jsonl.Info, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := f.disk.names[name]
	if f.killed {
		return jsonl.Info{}, pathError("stat", name, ErrKilled)
	}
	if n == nil {
		return jsonl.Info{}, pathError("stat", name, fs.ErrNotExist)
	}
	return n.info(), nil
}

func (n *node) info() jsonl.Info {
	info := jsonl.Info{Size: int64(len(n.data)), ModTime: n.changed, Inode: n.inode}
	if n.named {
		info.Links = 1
	}
	return info
}

// ReadDir implements jsonl.FS. The order is descending by name.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.killed || f.disk.names[name] == nil {
		return nil, pathError("open", name, fs.ErrNotExist)
	}
	var entries []fs.DirEntry
	for other, n := range f.disk.names {
		if other != "." && path.Dir(other) == name {
			entries = append(entries, fs.FileInfoToDirEntry(fileInfo{path.Base(other), n.info(), n.dir}))
		}
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return -compare(a, b) })
	return entries, nil
}

func compare(a, b fs.DirEntry) int {
	if a.Name() < b.Name() {
		return -1
	}
	return 1
}

// SyncDir implements jsonl.FS.
func (f *FS) SyncDir(name string) error {
	if _, err := f.Stat(name); err != nil {
		return err
	}
	return f.do("syncdir", name, 0, func(fault Fault) error {
		if fault.Err == nil || fault.Done {
			f.disk.syncNames(name)
		}
		return nil
	})
}

// Path implements jsonl.FS. The disk is in memory.
func (f *FS) Path(string) string { return "" }

// Close implements jsonl.FS. Open files stay open.
func (f *FS) Close() error { return nil }

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// fileInfo is a jsonl.Info as an fs.FileInfo.
type fileInfo struct {
	name string
	jsonl.Info
	dir bool
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.Info.Size }
func (i fileInfo) ModTime() time.Time { return i.Info.ModTime }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o700
	}
	return 0o600
}

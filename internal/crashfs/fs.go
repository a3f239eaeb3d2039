package crashfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/convlog/convlog/store/jsonl"
)

// ErrKilled is what every operation of a killed process answers.
var ErrKilled = errors.New("the process was killed")

// FS is a process with the disk mounted. It implements jsonl.FS.
type FS struct {
	disk    *Disk
	process int
	dead    bool
	open    map[*File]struct{}
}

var _ jsonl.FS = (*FS)(nil)

// Kill ends the process: its files are closed, its locks given back, and
// whatever still runs of it changes nothing more.
func (f *FS) Kill() {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	f.kill()
}

func (f *FS) kill() {
	f.dead = true
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
		return missing("mkdir", name, fs.ErrExist)
	}
	return f.do("mkdir", name, 0, func(Fault) error {
		n, dir := f.disk.find(name)
		if !dir {
			return missing("mkdir", name, fs.ErrNotExist)
		}
		if n != nil {
			return missing("mkdir", name, fs.ErrExist)
		}
		f.disk.log(entry{kind: created, name: name, node: f.disk.makeNode(true)})
		return nil
	})
}

// Open implements jsonl.FS.
func (f *FS) Open(name string, flag int) (jsonl.File, error) {
	for {
		file, err := f.openExisting(name, flag)
		if flag&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist) {
			return opened(file, err)
		}
		err = f.do("create", name, 0, func(Fault) error {
			n, dir := f.disk.find(name)
			if !dir {
				return missing("open", name, fs.ErrNotExist)
			}
			if n == nil {
				n = f.disk.makeNode(false)
				f.disk.log(entry{kind: created, name: name, node: n})
				file = f.hold(n, name, flag)
			}
			return nil
		})
		if file != nil && err != nil {
			_ = file.Close()
		}
		if file != nil || err != nil {
			return opened(file, err)
		}
	}
}

// opened keeps a nil *File from being a File.
func opened(file *File, err error) (jsonl.File, error) {
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (f *FS) openExisting(name string, flag int) (*File, error) {
	f.disk.mu.Lock()
	n, dir := f.disk.find(name)
	var err error
	switch {
	case f.dead:
		err = ErrKilled
	case !dir || n == nil:
		err = fs.ErrNotExist
	case flag&os.O_EXCL != 0:
		err = fs.ErrExist
	case n.dir:
		err = unix.EISDIR
	}
	if err != nil {
		f.disk.mu.Unlock()
		return nil, missing("open", name, err)
	}
	file := f.hold(n, name, flag)
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

// hold makes an open file of a node.
func (f *FS) hold(n *node, name string, flag int) *File {
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
		old, dir := d.find(to)
		if n == nil || !dir {
			return missing("rename", from, fs.ErrNotExist)
		}
		d.log(entry{kind: renamed, name: from, to: to, node: n})
		if old != nil {
			d.unname(old)
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
			return missing("remove", name, fs.ErrNotExist)
		}
		f.disk.log(entry{kind: removed, name: name, node: n})
		f.disk.unname(n)
		return nil
	})
}

// Stat implements jsonl.FS.
func (f *FS) Stat(name string) (jsonl.Info, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n := f.disk.names[name]
	if f.dead {
		return jsonl.Info{}, missing("stat", name, ErrKilled)
	}
	if n == nil {
		return jsonl.Info{}, missing("stat", name, fs.ErrNotExist)
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

// ReadDir implements jsonl.FS: the last name comes first.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.dead || f.disk.names[name] == nil {
		return nil, missing("open", name, fs.ErrNotExist)
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

// Close implements jsonl.FS. Files that are open stay so.
func (f *FS) Close() error { return nil }

func missing(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// fileInfo is an Info as the standard library has it.
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

package crashfs

import (
	"maps"
	"path"
	"slices"
	"sync"
	"time"
)

// Disk is a directory on a simulated disk. It has the state that processes see and the
// state that is on disk. All methods may be called concurrently.
type Disk struct {
	mu      sync.Mutex
	ops     int
	mounts  int
	names   map[string]*node // as processes see them; has "." once the directory exists
	synced  map[string]*node // as they are on disk
	journal []entry          // unsynced changes of names
	free    []uint64         // free inode numbers
	inodes  uint64           // the highest inode number

	fault func(Op) Fault
	onOp  func(Op, func() *Disk)
}

// Op is an operation that changes the disk.
type Op struct {
	N       int    // number of the operation, from 1
	Kind    string // makeroot, mkdir, create, write, truncate, sync, syncdir, rename, remove or touch
	Name    string // file name; for a rename, the new name
	Bytes   int    // size of a write
	Process int    // number of the Mount, from 1
}

// New returns a disk without the directory: FS.MakeRoot creates it.
func New() *Disk {
	return &Disk{names: map[string]*node{}, synced: map[string]*node{}}
}

// Mount returns the disk as a new process sees it.
func (d *Disk) Mount() *FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mounts++
	return &FS{disk: d, process: d.mounts, open: map[*File]struct{}{}}
}

// OnOp makes the disk call f after each operation, also after a failed one. No other
// operation runs meanwhile. image returns a Clone of the disk; only f may call it.
func (d *Disk) OnOp(f func(op Op, image func() *Disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onOp = f
}

// SetFault makes f choose a fault for each later operation.
func (d *Disk) SetFault(f func(Op) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Ops returns the number of operations so far.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Files returns the content of each file, by name. The caller must not modify it.
func (d *Disk) Files() map[string][]byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	files := map[string][]byte{}
	for name, n := range d.names {
		if !n.dir {
			files[name] = n.data
		}
	}
	return files
}

// Damage changes the content of a file on disk directly, without an operation.
func (d *Disk) Damage(name string, change func(b []byte) []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	n.content = content{data: change(slices.Clone(n.data))}
	n.sync()
}

// now returns the disk's time: one millisecond per operation.
func (d *Disk) now() time.Time {
	return time.Unix(1_000_000_000, 0).Add(time.Duration(d.ops) * time.Millisecond)
}

// node is a file or a directory.
type node struct {
	dir     bool
	inode   uint64
	changed time.Time
	opens   int
	named   bool
	locks   map[*File]bool // lock holders; true is exclusive
	content
}

func (d *Disk) makeNode(dir bool) *node {
	n := &node{dir: dir, changed: d.now(), named: true, locks: map[*File]bool{}}
	if last := len(d.free) - 1; last >= 0 {
		n.inode, d.free = d.free[last], d.free[:last]
		return n
	}
	d.inodes++
	n.inode = d.inodes
	return n
}

// removeName records that n has no name any more.
func (d *Disk) removeName(n *node) {
	n.named = false
	d.freeInode(n)
}

// freeInode makes the inode number reusable if the node has no name and is not open.
func (d *Disk) freeInode(n *node) {
	if !n.named && n.opens == 0 {
		d.free = append(d.free, n.inode)
	}
}

// lookup returns the node of a name, and whether the parent directory exists.
func (d *Disk) lookup(name string) (n *node, dir bool) {
	up, ok := d.names[path.Dir(name)]
	return d.names[name], ok && up.dir
}

// Clone returns the disk after the death of all processes: no file is open or locked.
// Unsynced changes stay unsynced.
func (d *Disk) Clone() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clone()
}

func (d *Disk) clone() *Disk {
	c := New()
	c.ops, c.inodes, c.free = d.ops, d.inodes, append(c.free, d.free...)
	copies := map[*node]*node{}
	twin := func(n *node) *node {
		if copies[n] == nil {
			copies[n] = n.copyNode()
		}
		return copies[n]
	}
	for name, n := range d.names {
		c.names[name] = twin(n)
	}
	for name, n := range d.synced {
		c.synced[name] = twin(n)
	}
	for _, e := range d.journal {
		e.node = twin(e.node)
		c.journal = append(c.journal, e)
	}
	for n, copied := range copies {
		if !n.named && n.opens > 0 {
			c.freeInode(copied)
		}
	}
	return c
}

func (n *node) copyNode() *node {
	t := *n
	t.opens, t.locks = 0, map[*File]bool{}
	t.lost = maps.Clone(n.lost)
	t.data = n.data[:len(n.data):len(n.data)]
	t.changes = n.changes[:len(n.changes):len(n.changes)]
	return &t
}

package crashfs

import (
	"maps"
	"path"
	"slices"
	"sync"
	"time"
)

// Disk is a directory of a disk: what the processes that have mounted it see,
// and what is on it for certain. All methods may be called concurrently.
type Disk struct {
	mu      sync.Mutex
	ops     int
	mounts  int
	names   map[string]*node // as processes see them; "." is there once the directory was made
	synced  map[string]*node // as they are on disk
	journal []entry          // the changes of names since
	free    []uint64         // inode numbers
	inodes  uint64           // how many numbers were given

	fault func(Op) Fault
	onOp  func(Op, func() *Disk)
}

// Op is an operation that changes something.
type Op struct {
	N       int    // counts from 1
	Kind    string // makeroot, mkdir, create, write, truncate, sync, syncdir, rename, remove or touch
	Name    string // of the file; of a rename, the new name
	Bytes   int    // of a write
	Process int    // which Mount; counts from 1
}

// New is a disk without the directory, which MakeRoot makes.
func New() *Disk {
	return &Disk{names: map[string]*node{}, synced: map[string]*node{}}
}

// Mount starts a process.
func (d *Disk) Mount() *FS {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mounts++
	return &FS{disk: d, process: d.mounts, open: map[*File]struct{}{}}
}

// OnOp has f called after every operation, done or failed, while no other goes
// on. image gives a Clone of the disk as it is then; only f may call it.
func (d *Disk) OnOp(f func(op Op, image func() *Disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.onOp = f
}

// SetFault has f decide on every operation to come.
func (d *Disk) SetFault(f func(Op) Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// Ops is how many operations there were.
func (d *Disk) Ops() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops
}

// Files are the bytes of every file, by name. They must not be modified.
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

// Damage changes the bytes of a file behind the back of all processes, on disk
// for certain.
func (d *Disk) Damage(name string, change func(b []byte) []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	n.content = content{data: change(slices.Clone(n.data))}
	n.sync()
}

// now is the disk's clock: an operation takes a millisecond.
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
	locks   map[*File]bool // the holders of its lock; true is exclusive
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

// unname takes a node's name away.
func (d *Disk) unname(n *node) {
	n.named = false
	d.reclaim(n)
}

// reclaim gives the number of a node that nobody can reach to the next one.
func (d *Disk) reclaim(n *node) {
	if !n.named && n.opens == 0 {
		d.free = append(d.free, n.inode)
	}
}

// find gives the node of a name, if the directory it is in exists.
func (d *Disk) find(name string) (n *node, dir bool) {
	up, ok := d.names[path.Dir(name)]
	return d.names[name], ok && up.dir
}

// Clone is the disk after all processes ended: nothing is open or locked.
// Unsynced changes are still unsynced.
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
			copies[n] = n.twin()
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
			c.reclaim(copied)
		}
	}
	return c
}

func (n *node) twin() *node {
	t := *n
	t.opens, t.locks = 0, map[*File]bool{}
	t.lost = maps.Clone(n.lost)
	t.data = n.data[:len(n.data):len(n.data)]
	t.changes = n.changes[:len(n.changes):len(n.changes)]
	return &t
}

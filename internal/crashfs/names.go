package crashfs

import (
	"maps"
	"path"
	"slices"
)

// entry is a change of names.
type entry struct {
	kind   change
	name   string
	to     string // the new name of a rename
	node   *node
	synced bool // with a directory that is not kept itself yet
}

type change int

const (
	created change = iota
	removed
	renamed
)

// apply makes the change.
func (e *entry) apply(names map[string]*node) {
	switch e.kind {
	case created:
		names[e.name] = e.node
	case removed:
		delete(names, e.name)
	case renamed:
		delete(names, e.name)
		names[e.to] = e.node
	}
}

// log makes a change that is not on disk yet.
func (d *Disk) log(e entry) {
	e.apply(d.names)
	d.journal = append(d.journal, e)
}

// in reports whether the change is one of a directory.
func (e *entry) in(dir string) bool {
	return path.Dir(e.name) == dir || e.to != "" && path.Dir(e.to) == dir
}

// after reports whether the change must not be kept without other, an earlier
// one.
func (e *entry) after(other *entry) bool {
	return e.touches(other.name) || other.to != "" && e.touches(other.to)
}

func (e *entry) touches(name string) bool { return e.name == name || e.to == name }

// fits reports whether the directories of the change are there.
func (e *entry) fits(names map[string]*node) bool {
	return names[path.Dir(e.name)] != nil && (e.to == "" || names[path.Dir(e.to)] != nil)
}

// syncNames keeps the changes of one directory, and those they follow.
func (d *Disk) syncNames(dir string) {
	for i := range slices.Backward(d.journal) {
		e := &d.journal[i]
		e.synced = e.synced || e.in(dir) || slices.ContainsFunc(d.journal[i+1:], func(later entry) bool {
			return later.synced && later.after(e)
		})
	}
	d.journal = keep(d.synced, d.journal, func(int) bool { return false })
}

// keep applies to names the changes that are synced or chosen, where they fit
// and follow no change that is left out; it returns those.
func keep(names map[string]*node, journal []entry, chosen func(i int) bool) (left []entry) {
	for i, e := range journal {
		follows := func(other entry) bool { return e.after(&other) }
		if (e.synced || chosen(i)) && e.fits(names) && !slices.ContainsFunc(left, follows) {
			e.apply(names)
		} else {
			left = append(left, e)
		}
	}
	return left
}

// surviving are the names after a loss of power.
func (d *Disk) surviving(l *lottery) map[string]*node {
	names := maps.Clone(d.synced)
	if n := len(d.journal); n > 0 {
		keep(names, d.journal, l.choice(n))
	}
	return names
}

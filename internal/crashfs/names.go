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
	to     string // new name of a rename
	node   *node
	synced bool // its directory was synced, but the directory itself is not durable yet
}

type change int

const (
	createSynced change = iota
	removed
	renamed
)

// apply makes the change in names.
func (e *entry) apply(names map[string]*node) {
	switch e.kind {
	case createSynced:
		names[e.name] = e.node
	case removed:
		delete(names, e.name)
	case renamed:
		delete(names, e.name)
		names[e.to] = e.node
	}
}

// log makes a change that is not durable yet.
func (d *Disk) log(e entry) {
	e.apply(d.names)
	d.journal = append(d.journal, e)
}

// in reports whether the change is in dir.
func (e *entry) in(dir string) bool {
	return path.Dir(e.name) == dir || e.to != "" && path.Dir(e.to) == dir
}

// dependsOn reports whether the change cannot be kept without the earlier change other.
func (e *entry) dependsOn(other *entry) bool {
	return e.touches(other.name) || other.to != "" && e.touches(other.to)
}

func (e *entry) touches(name string) bool { return e.name == name || e.to == name }

// parentsExist reports whether the directories of the change exist.
func (e *entry) parentsExist(names map[string]*node) bool {
	return names[path.Dir(e.name)] != nil && (e.to == "" || names[path.Dir(e.to)] != nil)
}

// syncNames makes the changes in one directory durable, and the changes they depend on.
func (d *Disk) syncNames(dir string) {
	for i := range slices.Backward(d.journal) {
		e := &d.journal[i]
		e.synced = e.synced || e.in(dir) || slices.ContainsFunc(d.journal[i+1:], func(later entry) bool {
			return later.synced && later.dependsOn(e)
		})
	}
	d.journal = applyEntries(d.synced, d.journal, func(int) bool { return false })
}

// applyEntries applies to names the entries that are synced or chosen, if their
// directories exist and they depend on no omitted entry. It returns the omitted
// entries.
func applyEntries(names map[string]*node, journal []entry, chosen func(i int) bool) (left []entry) {
	for i, e := range journal {
		follows := func(other entry) bool { return e.dependsOn(&other) }
		if (e.synced || chosen(i)) && e.parentsExist(names) && !slices.ContainsFunc(left, follows) {
			e.apply(names)
		} else {
			left = append(left, e)
		}
	}
	return left
}

// namesAfterCrash returns the names after a loss of power.
func (d *Disk) namesAfterCrash(l *chooser) map[string]*node {
	names := maps.Clone(d.synced)
	if n := len(d.journal); n > 0 {
		applyEntries(names, d.journal, l.choice(n))
	}
	return names
}

package interop

import (
	"cmp"
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// declare asks the formats for the ids of the files to read, several files at a time. A
// single file has nothing to wait for.
func declare(ctx context.Context, files []found) {
	var unread []*found
	for i := range files {
		if files[i].known == nil {
			unread = append(unread, &files[i])
		}
	}
	if len(unread) < 2 {
		return
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(len(unread), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(unread)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if d, ok := unread[i].format.(Declarer); ok {
					unread[i].ids = d.Declare(unread[i].src)
				}
			}
		})
	}
	workers.Wait()
}

// order sorts files topologically. A file comes after the owners of its needs, and
// its depth is one more than the deepest owner's. Files of one depth keep their
// order. order also sets which files each file waits for.
func order(files []found) []found {
	g := graph{files: files, before: owners(files), depth: make([]int, len(files)), state: make([]state, len(files)), copies: findCopies(files)}
	for i := range files {
		g.visit(i)
	}
	return g.sorted()
}

// graph is the graph of files that need each other.
type graph struct {
	files  []found
	before [][]int // the owners of the ids that each file needs
	depth  []int
	state  []state
	copies copies
}

type state int8

const (
	unvisited state = iota
	visiting
	visited
)

// visit sets the depth of a file, after the depth of each owner. An owner that is
// being visited needs the file itself: that is a cycle. visit breaks the cycle
// there, so the file is imported before that owner.
func (g *graph) visit(i int) {
	if g.state[i] != unvisited {
		return
	}
	g.state[i] = visiting
	for _, owner := range g.before[i] {
		g.visit(owner)
		if g.state[owner] == visiting {
			g.files[i].cycle = cmp.Or(g.files[i].cycle, g.files[owner].src.Name)
			continue
		}
		g.depth[i] = max(g.depth[i], g.depth[owner]+1)
	}
	g.state[i] = visited
}

// sorted gives the files by depth, and files with common records by copies.compare. Each
// waits for the owners of its needs, for each id that it owns, for the owner before it, and
// for the file with common records before it.
func (g *graph) sorted() []found {
	byDepth := make([]int, len(g.files))
	for i := range byDepth {
		byDepth[i] = i
	}
	slices.SortStableFunc(byDepth, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.depth[a], g.depth[b]), g.copies.compare(g.files, a, b))
	})
	sorted := make([]found, 0, len(g.files))
	place := make([]int, len(g.files))
	last := map[string]int{} // the last owner of each id
	lastCopy := map[int]int{}
	for at, i := range byDepth {
		place[i] = at
		f := g.files[i]
		for _, owner := range g.before[i] {
			if g.depth[owner] < g.depth[i] {
				f.waits = append(f.waits, place[owner])
			}
		}
		for _, id := range f.ids.Owns {
			if owner, ok := last[id]; ok {
				f.waits = append(f.waits, owner)
			}
			last[id] = at
		}
		if c := g.copies[i]; c.common > 0 {
			if before, ok := lastCopy[c.group]; ok {
				f.waits = append(f.waits, before)
			}
			lastCopy[c.group] = at
		}
		f.ids.Records = nil
		slices.Sort(f.waits)
		f.waits = slices.DeleteFunc(slices.Compact(f.waits), func(file int) bool { return file == at })
		sorted = append(sorted, f)
	}
	return sorted
}

// owners finds the files that own the ids that each file needs.
func owners(files []found) [][]int {
	o := ownership{}
	for i := range files {
		for _, id := range files[i].ids.Needs {
			o[id] = nil
		}
	}
	for i := range files {
		o.add(i, slices.Values(files[i].ids.Owns))
	}
	o.addMore(files)
	before := make([][]int, len(files))
	for i := range files {
		for _, id := range files[i].ids.Needs {
			if !slices.Contains(o[id], i) {
				before[i] = append(before[i], o[id]...)
			}
		}
		slices.Sort(before[i])
		before[i] = slices.Compact(before[i])
	}
	return before
}

// ownership maps each id that a file needs to the files that own it.
type ownership map[string][]int

func (o ownership) add(file int, ids iter.Seq[string]) {
	for id := range ids {
		if files, needed := o[id]; needed {
			o[id] = append(files, file)
		}
	}
}

// addMore reads the other ids of the files that own an id in common with a file
// whose needs nobody owns yet.
func (o ownership) addMore(files []found) {
	shared := map[string]bool{}
	for i := range files {
		if slices.ContainsFunc(files[i].ids.Needs, func(id string) bool { return len(o[id]) == 0 }) {
			for _, id := range files[i].ids.Owns {
				shared[id] = true
			}
		}
	}
	for i := range files {
		if ids := files[i].ids; ids.More != nil && slices.ContainsFunc(ids.Owns, func(id string) bool { return shared[id] }) {
			o.add(i, ids.More)
		}
	}
}

package interop

import (
	"cmp"
	"slices"
)

// copies tells for each file which other files have records in common with it.
type copies []copied

// copied is a file in a group of files. Each file of a group has records in common with
// another one.
type copied struct {
	group  int // the first file of the group
	common int // the number of records that other files have too
}

// compare orders the groups by their first files, and the files of a group so that an
// original comes before its copies.
func (c copies) compare(files []found, a, b int) int {
	return cmp.Or(
		cmp.Compare(c[a].group, c[b].group),
		files[a].ids.From.Compare(files[b].ids.From),
		cmp.Compare(c[a].common, c[b].common),
		files[a].ids.To.Compare(files[b].ids.To),
	)
}

// recordIn is a record of a file.
type recordIn struct {
	hash uint64
	file int32
}

// findCopies finds the files that have records in common. It needs 16 bytes for a record.
func findCopies(files []found) copies {
	c := make(copies, len(files))
	n := 0
	for i := range files {
		c[i].group = i
		n += len(files[i].ids.Records)
	}
	all := make([]recordIn, 0, n)
	for i := range files {
		for _, hash := range files[i].ids.Records {
			all = append(all, recordIn{hash, int32(i)})
		}
	}
	slices.SortFunc(all, func(a, b recordIn) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.file, b.file)) })
	all = slices.Compact(all)
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].hash == all[0].hash {
			n++
		}
		c.join(all[:n])
		all = all[n:]
	}
	for i := range c {
		c[i].group = c.first(i)
	}
	return c
}

// join puts the files that have a record into one group.
func (c copies) join(files []recordIn) {
	if len(files) < 2 {
		return
	}
	first := c.first(int(files[0].file))
	for _, f := range files {
		c[f.file].common++
		other := c.first(int(f.file))
		c[max(first, other)].group = min(first, other)
		first = min(first, other)
	}
}

// first is the first file of the group of a file.
func (c copies) first(file int) int {
	for c[file].group != file {
		c[file].group = c[c[file].group].group
		file = c[file].group
	}
	return file
}

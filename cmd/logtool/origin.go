package main

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/fork"
)

// origin is where a session comes from, and how many come from it.
type origin struct {
	Kind    fork.Kind `json:"kind"`
	Parent  string    `json:"parent,omitzero"`
	At      int64     `json:"at,omitzero"`
	Label   string    `json:"label,omitzero"`
	Missing bool      `json:"missing,omitzero"` // the parent is not in the store
	Partial bool      `json:"partial,omitzero"` // a copy that was not finished
	Forks   int64     `json:"forks"`
	Runs    int64     `json:"runs"`
	Copies  int64     `json:"copies"`
}

func newOrigin(n *fork.Node) origin {
	return origin{Kind: n.Kind, Parent: n.Parent, At: n.Seq, Label: n.Label, Partial: n.Partial}
}

// relate counts what comes from each session of a store, all of which are in
// rows, and finds the parents that are missing.
func relate(rows []*sessionRow) {
	byID := map[string]*origin{}
	for i := range rows {
		byID[rows[i].ID] = &rows[i].origin
	}
	for i := range rows {
		row := rows[i]
		parent := byID[row.Parent]
		switch {
		case row.Parent == "":
		case parent == nil:
			row.Missing = true
		case row.Kind == fork.KindFork:
			parent.Forks++
		case row.Kind == fork.KindRun:
			parent.Runs++
		case row.Kind == fork.KindCopy:
			parent.Copies++
		}
	}
}

// from says where a session comes from: "fork of order-42@7".
func (o *origin) from(ids []string) string {
	if o.Parent == "" {
		return "-"
	}
	parent := o.Parent
	if !o.Missing {
		parent = abbreviate(parent, ids)
	}
	text := string(o.Kind) + " of " + clean(parent)
	if o.At > 0 || o.Kind == fork.KindFork {
		text += "@" + strconv.FormatInt(o.At, 10)
	}
	if o.Missing {
		text += ", missing"
	}
	return text
}

func idsOf(rows []*sessionRow) (ids []string) {
	for i := range rows {
		ids = append(ids, rows[i].ID)
	}
	slices.Sort(ids)
	return ids
}

// abbreviate is the beginning of an id by which resolve finds it, of eight bytes
// at least. ids are all ids of the store, sorted.
func abbreviate(id string, ids []string) string {
	i, _ := slices.BinarySearch(ids, id)
	need := 8
	if i > 0 {
		need = max(need, common(ids[i-1], id)+1)
	}
	for _, next := range ids[min(i+1, len(ids)):] {
		if strings.HasPrefix(next, id+".") {
			continue // a sub-agent of it
		}
		need = max(need, common(next, id)+1)
		if !strings.HasPrefix(next, id) {
			break
		}
	}
	for need < len(id) && !utf8.RuneStart(id[need]) {
		need++
	}
	return id[:min(need, len(id))]
}

// common is how many bytes two texts begin with in common.
func common(a, b string) (n int) {
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

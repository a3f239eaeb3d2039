package main

import (
	"cmp"
	"strconv"

	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/listing"
)

// sessionRow is a session in a listing. A command has one for each session of the store.
type sessionRow = listing.Row

// about is the parent of a fork, or the agent and the folder of another session, for a
// session without a title.
func about(row *sessionRow) string {
	if text := brief(row.About(), 60); text != "" {
		return "(" + text + ")"
	}
	return ""
}

// nameOf is the label of a fork and the title, else a description.
func nameOf(row *sessionRow) string {
	label, title := brief(row.Label(), 40), brief(row.KnownTitle(), titleColumns)
	switch {
	case label == "" || row.Kind() != fork.KindFork:
		return cmp.Or(title, about(row), "-")
	case title == "":
		return label + " " + about(row)
	}
	return label + " · " + title
}

// fromOf describes the parent: "fork of order-42@7".
func fromOf(row *sessionRow, ids []string) string {
	if row.Parent == "" {
		return "-"
	}
	parent := row.Parent
	if !row.Missing {
		parent = abbreviate(parent, ids)
	}
	text := string(row.Kind()) + " of " + clean(parent)
	if row.At > 0 || row.Kind() == fork.KindFork {
		text += "@" + strconv.FormatInt(row.At, 10)
	}
	if row.Missing {
		text += ", missing"
	}
	return text
}

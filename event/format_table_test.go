package event

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// formatRow is a row of docs/FORMAT.md about an event type or part type.
type formatRow struct {
	scope   string
	control bool
	members []formatMember
	kept    []string
	fixed   bool
}

type formatMember struct {
	name  string
	inner []string // the members of an object, where the table names them
}

func (r formatRow) names() (names []string) {
	for _, m := range r.members {
		names = append(names, m.name)
	}
	return names
}

// formatTables reads chapter 7 of docs/FORMAT.md.
func formatTables(t *testing.T) (types map[Type]formatRow, parts map[PartType]formatRow, shared map[string][]formatMember) {
	t.Helper()
	text, err := os.ReadFile("../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, found := strings.Cut(string(text), "## 7. ")
	if !found {
		t.Fatal("docs/FORMAT.md has no chapter 7")
	}
	chapter, _, _ = strings.Cut(chapter, "\n### Metadata ")
	shared = map[string][]formatMember{}
	for _, m := range regexp.MustCompile("(?m)^\\*\\*(\\w+)\\*\\* `\\{([^`]*)\\}`").FindAllStringSubmatch(chapter, -1) {
		shared[m[1]] = parseMembers(m[2])
	}
	types, parts = map[Type]formatRow{}, map[PartType]formatRow{}
	for line := range strings.Lines(chapter) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		names := quotedNames(cells[0])
		switch {
		case !strings.HasPrefix(line, "| `"):
		case len(cells) == 4:
			for _, name := range names {
				types[Type(name)] = parseRow(cells)
			}
		case len(cells) == 2:
			for _, name := range names {
				parts[PartType(name)] = formatRow{members: parseMembers(cells[1])}
			}
		}
	}
	return types, parts, shared
}

func quotedNames(cell string) (names []string) {
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

func parseRow(cells []string) formatRow {
	scope, control, _ := strings.Cut(strings.TrimSpace(cells[1]), ", ")
	row := formatRow{scope: scope, control: control == "control"}
	kept, added, _ := strings.Cut(strings.TrimSpace(cells[2]), "; added: ")
	row.members = parseMembers(kept)
	row.kept = row.names()
	if added != "" {
		row.kept = append(row.kept, formatRow{members: parseMembers(added)}.names()...)
	}
	switch erased := strings.TrimSpace(cells[3]); erased {
	case "not redactable":
		row.fixed, row.kept = true, nil
	case "none":
	default:
		row.members = append(row.members, parseMembers(erased)...)
	}
	return row
}

var memberPattern = regexp.MustCompile(`^(?:and one of:? )?([a-z_]+)(?: \{([^}]*)\})?`)

// parseMembers reads a list of members with remarks in brackets.
func parseMembers(list string) (members []formatMember) {
	for _, item := range splitTop(strings.ReplaceAll(list, ";", ",")) {
		m := memberPattern.FindStringSubmatch(item)
		if m == nil || strings.HasPrefix(item, "or none") {
			continue
		}
		member := formatMember{name: m[1]}
		if m[2] != "" && !strings.Contains(m[2], ":") {
			member.inner = regexp.MustCompile(`[a-z_]+`).FindAllString(m[2], -1)
		}
		members = append(members, member)
	}
	return members
}

// splitTop splits at commas outside brackets.
func splitTop(list string) (items []string) {
	depth, start := 0, 0
	for i, c := range list {
		switch c {
		case '(', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case ',':
			if depth == 0 {
				items = append(items, strings.TrimSpace(list[start:i]))
				start = i + 1
			}
		}
	}
	return append(items, strings.TrimSpace(list[start:]))
}

package claude

import (
	"iter"

	"github.com/convlog/convlog/interop"
)

// Declare gives the sessions that a file writes, and the files that it builds on. It
// reads the whole file, because any line may name another session. Beside the ids
// of sessions the ids are
//
//	claude:begin/<session>         a file has a line that the session can begin with
//	claude:root/<session>          and the parent of that line, if any, is before it
//	claude:line/<session>/<uuid>   a file has the line (listed by More)
//
// A sub-agent needs its session. A file with lines of a session that cannot begin it
// needs a file that begins it. A file that would begin a session with a line whose
// parent is missing needs the parent, and a file that has the session's root.
func (Format) Declare(src interop.Source) interop.IDs {
	d := declaration{sessions: map[string]*declared{}, lines: map[string]bool{}}
	for line, err := range interop.Lines(src) {
		if err != nil {
			break
		}
		if f, err := factsOf(line); err == nil && f.SessionID != "" {
			d.line(&f)
		}
	}
	ids := d.ids()
	ids.More = linesOf(src)
	return ids
}

// declaration collects the ids of a file.
type declaration struct {
	sessions map[string]*declared
	order    []string
	lines    map[string]bool // uuids
	needs    []string
}

// declared is a session of the file. A session that begins with a line whose parent
// is missing has no root.
type declared struct{ begins, roots bool }

// line adds the ids of a line that names a session.
func (d *declaration) line(f *facts) {
	id := f.SessionID
	if f.IsSidechain && f.AgentID != "" {
		id += ".agent-" + f.AgentID
	}
	s := d.sessions[id]
	if s == nil {
		s = &declared{}
		d.sessions[id] = s
		d.order = append(d.order, id)
		if id != f.SessionID {
			d.needs = append(d.needs, f.SessionID)
		}
	}
	if !s.begins && f.begins() {
		s.begins = true
		s.roots = f.IsSidechain || f.ParentUUID == "" || d.lines[f.ParentUUID]
		if !s.roots {
			d.needs = append(d.needs, "claude:root/"+id, lineID(f.SessionID, f.ParentUUID))
		}
	}
	if f.UUID != "" {
		d.lines[f.UUID] = true
	}
}

// ids are the ids of the sessions, and their parts.
func (d *declaration) ids() interop.IDs {
	ids := interop.IDs{Needs: d.needs}
	for _, id := range d.order {
		ids.Owns = append(ids.Owns, id)
		switch s := d.sessions[id]; {
		case !s.begins:
			ids.Needs = append(ids.Needs, "claude:begin/"+id)
		case s.roots:
			ids.Owns = append(ids.Owns, "claude:begin/"+id, "claude:root/"+id)
		default:
			ids.Owns = append(ids.Owns, "claude:begin/"+id)
		}
	}
	return ids
}

func lineID(session, uuid string) string { return "claude:line/" + session + "/" + uuid }

// linesOf yields the ids of the lines of a file.
func linesOf(src interop.Source) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line, err := range interop.Lines(src) {
			if err != nil {
				return
			}
			f, err := factsOf(line)
			if err == nil && f.SessionID != "" && f.UUID != "" && !yield(lineID(f.SessionID, f.UUID)) {
				return
			}
		}
	}
}

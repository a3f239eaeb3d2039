package claude

import (
	"bytes"
	"hash/maphash"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// A file owns more ids than its session ids. It owns beginID if it has a line that
// begins the session, and rootID if that line has no parent or follows its parent. It
// owns lineID of each line; More lists these ids.
func beginID(session string) string { return "claude:begin/" + session }

func rootID(session string) string { return "claude:root/" + session }

func lineID(session, uuid string) string { return "claude:line/" + session + "/" + uuid }

// Declare gives the sessions that a file writes, and the ids of other files that it
// builds on. It reads the whole file, because any line may name another session.
//
// A sub-agent needs its session. A file whose lines of a session cannot begin it
// needs a file that begins it. A file that would begin a session with a line whose
// parent is missing needs that parent, and a file that has the session's root.
func (Format) Declare(src interop.Source) interop.IDs {
	d := declaration{src: src, sessions: map[string]*declared{}, known: map[string]*declared{}}
	var from, to []byte
	for line, err := range records.Lines(src) {
		if err != nil {
			break
		}
		d.line(line)
		d.read++
		d.addRecords(line)
		if at, ok := member(line, `"timestamp"`); ok && len(at) > 0 {
			if len(from) == 0 || bytes.Compare(at, from) < 0 {
				from = append(from[:0], at...)
			}
			if bytes.Compare(at, to) > 0 {
				to = append(to[:0], at...)
			}
		}
	}
	ids := d.ids()
	ids.More, ids.Records = d.lines, d.records
	ids.From, ids.To = records.Time(string(from)), records.Time(string(to))
	return ids
}

// declaration collects the ids of a file.
type declaration struct {
	src      interop.Source
	read     int // lines
	sessions map[string]*declared
	order    []string
	needs    []string
	known    map[string]*declared // by mark
	mark     []byte
	records  []uint64
}

// seed is of the hashes of record ids.
var seed = maphash.MakeSeed()

// addRecords adds the uuids in a line, at any depth.
func (d *declaration) addRecords(line []byte) {
	for {
		_, rest, found := bytes.Cut(line, []byte(`"uuid"`))
		if !found {
			return
		}
		line = rest
		value := bytes.TrimLeft(rest, ": ")
		if !bytes.HasPrefix(value, []byte{'"'}) {
			continue
		}
		if uuid, _, ok := bytes.Cut(value[1:], []byte{'"'}); ok {
			d.records = append(d.records, maphash.Bytes(seed, uuid))
		}
	}
}

// declared is a session of the file. roots is false for a session that begins with a
// line whose parent is missing.
type declared struct{ begins, roots bool }

// line adds the ids of a line. It skips a line without parsing it if the line has the
// mark of a session that has begun.
func (d *declaration) line(line []byte) {
	marked := d.marks(line)
	if s := d.known[string(d.mark)]; marked && s != nil && s.begins {
		return
	}
	f, err := factsOf(line)
	if err != nil || f.SessionID == "" {
		return
	}
	s := d.add(&f)
	if marked {
		d.known[string(d.mark)] = s
	}
}

// marks sets the mark of a line: the values of its sessionId and agentId, and whether
// it is of a sub-agent. A line that has one of the members twice, at any depth, has
// no mark.
func (d *declaration) marks(line []byte) (ok bool) {
	session, once := member(line, `"sessionId"`)
	agent, atMostOnce := member(line, `"agentId"`)
	d.mark = append(append(append(d.mark[:0], session...), 0), agent...)
	_, side, _ := bytes.Cut(line, []byte(`"isSidechain"`))
	if bytes.HasPrefix(bytes.TrimLeft(side, ": "), []byte("true")) {
		d.mark = append(d.mark, 0)
	}
	return once && len(session) > 0 && atMostOnce
}

// member finds the text of a member, nil if there is none; ok is false if the line
// has several members of the name.
func member(line []byte, name string) (text []byte, ok bool) {
	_, rest, found := bytes.Cut(line, []byte(name))
	if !found {
		return nil, true
	}
	if bytes.Contains(rest, []byte(name)) {
		return nil, false
	}
	value := bytes.TrimLeft(rest, ": ")
	if !bytes.HasPrefix(value, []byte{'"'}) {
		return nil, false
	}
	text, _, ok = bytes.Cut(value[1:], []byte{'"'})
	return text, ok
}

// add adds the ids of a line that names a session.
func (d *declaration) add(f *facts) *declared {
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
	if s.begins || !f.beginsSession() {
		return s
	}
	s.begins = true
	s.roots = f.IsSidechain || f.ParentUUID == "" || d.has(f.ParentUUID)
	if !s.roots {
		d.needs = append(d.needs, rootID(id), lineID(f.SessionID, f.ParentUUID))
	}
	return s
}

// has reports whether a line with that uuid was read.
func (d *declaration) has(uuid string) bool {
	n := 0
	for line, err := range records.Lines(d.src) {
		if err != nil || n == d.read {
			break
		}
		n++
		if !bytes.Contains(line, []byte(uuid)) {
			continue
		}
		if f, err := factsOf(line); err == nil && f.SessionID != "" && f.UUID == uuid {
			return true
		}
	}
	return false
}

// ids are the ids of the sessions, and their parts.
func (d *declaration) ids() interop.IDs {
	ids := interop.IDs{Needs: d.needs}
	for _, id := range d.order {
		ids.Owns = append(ids.Owns, id)
		s := d.sessions[id]
		if !s.begins {
			ids.Needs = append(ids.Needs, beginID(id))
			continue
		}
		ids.Owns = append(ids.Owns, beginID(id))
		if s.roots {
			ids.Owns = append(ids.Owns, rootID(id))
		}
	}
	return ids
}

// lines yields the ids of the file's lines.
func (d *declaration) lines(yield func(id string) bool) {
	for line, err := range records.Lines(d.src) {
		if err != nil {
			return
		}
		f, err := factsOf(line)
		if err == nil && f.SessionID != "" && f.UUID != "" && !yield(lineID(f.SessionID, f.UUID)) {
			return
		}
	}
}

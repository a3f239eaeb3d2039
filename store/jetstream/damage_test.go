package jetstream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/nats-io/nats.go/jetstream"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// damage changes the files of a stopped server, or asks a running one.
type damage struct {
	name    string
	files   func(t *testing.T, streams string) // of the streams of one node
	request func(t *testing.T, d *damaged)
}

// damaged is a log on servers whose files a test changes.
type damaged struct {
	servers *natstest.Cluster
	options jetstream.Options
	lines   map[string][]string // of each session, when the log was whole
	copies  []string            // of the folders of the nodes
}

// newDamaged fills a log.
func newDamaged(t *testing.T, nodes int) *damaged {
	d := &damaged{servers: natstest.Start(t, natstest.Options{Nodes: nodes, JetStream: "sync_interval: always"}), lines: map[string][]string{}}
	d.options = jetstream.Options{Connect: d.servers.Connect, Replicas: nodes, Synced: true}
	log := openLog(t, d.options)
	for i := range 120 {
		session := fmt.Sprintf("s%02d", i%15)
		body := event.UserMessage(fmt.Sprint("text ", i, strings.Repeat(" word", 60)))
		if _, err := log.Append(t.Context(), session, eventlog.Any(), body); err != nil {
			t.Fatal(err)
		}
	}
	ref, err := log.PutBlob(t.Context(), strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "s07", eventlog.Any(), suite.Image(ref)); err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Redact(t.Context(), log, "s03", []int64{8}, erase.RedactOptions{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"s04", "s05"} {
		if err := erase.Remove(t.Context(), log, session); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Append(t.Context(), "s05", eventlog.New(), event.UserMessage("again")); err != nil {
		t.Fatal(err)
	}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d.lines[info.ID] = d.read(t, log, info.ID)
	}
	if err := log.Close(); err != nil { // stores the watermarks
		t.Fatal(err)
	}
	return d
}

// keep stops the servers and copies their files, for start.
func (d *damaged) keep(t *testing.T) {
	t.Helper()
	for _, n := range d.servers.Nodes {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(t.TempDir(), n.Name)
		if err := os.CopyFS(folder, os.DirFS(n.Folder())); err != nil {
			t.Fatal(err)
		}
		d.copies = append(d.copies, folder)
	}
}

func (d *damaged) read(t *testing.T, log *eventlog.Log, session string) (lines []string) {
	for e, err := range log.Store().Read(t.Context(), session, eventlog.Span{}) {
		if err != nil {
			break
		}
		lines = append(lines, string(e.Line()))
	}
	return lines
}

// start starts the servers with the files of the whole log, after the damage.
func (d *damaged) start(t *testing.T, nodes int, x damage) {
	t.Helper()
	for i, n := range d.servers.Nodes {
		if err := errors.Join(os.RemoveAll(n.Folder()), os.CopyFS(n.Folder(), os.DirFS(d.copies[i]))); err != nil {
			t.Fatal(err)
		}
		if x.files != nil && i < nodes {
			found, _ := filepath.Glob(filepath.Join(n.Folder(), "*", "streams"))
			if len(found) != 1 {
				t.Fatalf("the node has streams in %q", found)
			}
			x.files(t, found[0])
		}
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := d.servers.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if x.request != nil {
		x.request(t, d)
	}
}

func (d *damaged) stop(t *testing.T) {
	for _, n := range d.servers.Nodes {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// report is what a new process finds.
type report struct {
	opening  error
	store    []eventlog.Defect
	sessions map[string][]eventlog.Defect
}

// String names the damage, without the sessions.
func (r *report) String() string {
	return fmt.Sprintf("opening: %v, store: %v, sessions: %v", r.opening, r.store, r.sessions)
}

// verify checks the log in a new process.
func (d *damaged) verify(t *testing.T) (r report, lines map[string][]string) {
	options := d.options
	options.ReadOnly = true
	log := openLog(t, options)
	defer log.Close()
	r.sessions, lines = map[string][]eventlog.Defect{}, map[string][]string{}
	for x, err := range verify.Store(t.Context(), log) {
		switch {
		case err != nil:
			r.opening = err
			return r, lines
		case x.Rule == verify.RuleUnlisted:
			r.sessions[x.Session] = nil
		case x.Rule != verify.RuleWatermark:
			r.store = append(r.store, x)
		}
	}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			r.opening = err
			return r, lines
		}
		r.sessions[info.ID] = nil
	}
	for session := range r.sessions {
		found, err := verify.Session(t.Context(), log, session)
		if err != nil {
			t.Fatalf("verify %q: %v", session, err)
		}
		r.sessions[session] = found.Defects
		if len(found.Defects) == 0 {
			delete(r.sessions, session)
		}
		lines[session] = d.read(t, log, session)
	}
	return r, lines
}

// check checks that a loss is reported by name, and that no append continues a session that
// lost messages.
func (d *damaged) check(t *testing.T) report {
	t.Helper()
	r, lines := d.verify(t)
	if testing.Verbose() {
		t.Log(r.String())
	}
	lost, log := 0, openLog(t, d.options)
	defer log.Close()
	for _, session := range slices.Sorted(maps.Keys(d.lines)) {
		if slices.Equal(lines[session], d.lines[session]) {
			continue
		}
		lost++
		if _, named := r.sessions[session]; !named && r.opening == nil {
			t.Errorf("session %q has %d of %d events, and only this is reported: %v", session, len(lines[session]), len(d.lines[session]), r)
		}
		if lost > 3 {
			continue
		}
		_, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("more"))
		if err == nil && len(lines[session]) < len(d.lines[session]) {
			t.Errorf("an append continues session %q, which has %d of %d events", session, len(lines[session]), len(d.lines[session]))
		}
	}
	if r.opening != nil && !errors.Is(r.opening, eventlog.ErrCorrupt) {
		t.Errorf("opening: %v", r.opening)
	}
	blob := func(d eventlog.Defect) bool { return d.Rule == "blob" }
	if lost == 0 && slices.ContainsFunc(slices.Collect(maps.Values(r.sessions)), func(found []eventlog.Defect) bool { return !slices.ContainsFunc(found, blob) }) {
		t.Errorf("all events are there, and sessions are reported: %v", r)
	}
	return r
}

// blocks are the files of the messages of a stream.
func blocks(t *testing.T, streams, stream string) (files []string) {
	files, _ = filepath.Glob(filepath.Join(streams, "convlog_"+stream, "msgs", "*.blk"))
	if len(files) == 0 {
		t.Fatalf("no blocks of stream %s", stream)
	}
	return files
}

// edited returns a damage of the blocks of a stream.
func edited(name, stream string, edit func(b []byte) []byte) damage {
	return damage{name: name + " of " + stream, files: func(t *testing.T, streams string) {
		for _, file := range blocks(t, streams, stream) {
			b, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, edit(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}}
}

// removed returns a damage that removes files of a stream.
func removed(stream, pattern string) damage {
	return damage{name: "remove " + pattern + " of " + stream, files: func(t *testing.T, streams string) {
		files, _ := filepath.Glob(filepath.Join(streams, "convlog_"+stream, pattern))
		for _, file := range files {
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
		}
	}}
}

// withoutJournals returns a damage after which the servers of a cluster have no messages in the
// journals of their consensus either, as after a time in which they have compacted them.
func withoutJournals(d damage) damage {
	edit := d.files
	return damage{name: d.name + " and of journals", files: func(t *testing.T, streams string) {
		edit(t, streams)
		journals, _ := filepath.Glob(filepath.Join(streams, "..", "..", "$SYS", "_js_", "S-*"))
		if len(journals) == 0 {
			t.Fatalf("no journals beside %s", streams)
		}
		for _, folder := range journals {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
	}}
}

// asked returns a damage by a request of an administrator.
func asked(name, subject string, body any) damage {
	return damage{name: name, request: func(t *testing.T, d *damaged) { request(t, d.servers, subject, body) }}
}

// delete deletes a stream as an administrator.
func (d *damaged) delete(t *testing.T, stream string) {
	answer, err := connect(t, d.servers).Request("$JS.API.STREAM.DELETE.convlog_"+stream, nil, 10*time.Second)
	if err != nil || strings.Contains(string(answer.Data), `"error"`) {
		t.Fatalf("delete stream %s: %v %s", stream, err, answer.Data)
	}
}

// last is the sequence of the last message of a subject of shard 0.
func (d *damaged) last(t *testing.T, subject string) uint64 {
	js, err := api.New(connect(t, d.servers))
	if err != nil {
		t.Fatal(err)
	}
	st, err := js.Stream(t.Context(), "convlog_0")
	if err != nil {
		t.Fatal(err)
	}
	m, err := st.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	return m.Sequence
}

// damages are the damages of the table: at places of the files, and of whole streams.
func damages(places int) (all []damage) {
	for _, stream := range []string{"0", "control", "blobs"} {
		for i := range places {
			at := func(b []byte) int { return min(len(b)-1, len(b)*i/places+len(b)/(2*places)) }
			all = append(all,
				edited(fmt.Sprintf("flip at %d/%d", i, places), stream, func(b []byte) []byte { return flipped(b, at(b)) }),
				edited(fmt.Sprintf("truncate at %d/%d", i, places), stream, func(b []byte) []byte { return b[:at(b)] }))
		}
		all = append(all,
			edited("empty blocks", stream, func([]byte) []byte { return nil }),
			removed(stream, "msgs/*.blk"), removed(stream, "msgs/index.db"), removed(stream, "msgs"), removed(stream, "meta.*"), removed(stream, ""),
			asked("purge "+stream, "STREAM.PURGE.convlog_"+stream, nil),
			damage{name: "delete stream " + stream, request: func(t *testing.T, d *damaged) { d.delete(t, stream) }})
	}
	return append(all, asked("purge a session", "STREAM.PURGE.convlog_0", map[string]string{"filter": "convlog.0.session.czA2.frames"}),
		damage{name: "delete the last message of a session", request: func(t *testing.T, d *damaged) {
			request(t, d.servers, "STREAM.MSG.DELETE.convlog_0", map[string]any{"seq": d.last(t, "convlog.0.session.czA2.frames")})
		}})
}

// Whatever happens to the files or the streams of a single server, verify names each session
// that lost acknowledged events, and no append continues such a session.
func TestDamage(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, 1)
	d.keep(t)
	places := testsize.Pick(2, 2, 12)
	end := fmt.Sprintf(" at %d/", places-1) // of the control stream: on a slow machine it has ended locks only
	for _, x := range append([]damage{{name: "none"}}, damages(places)...) {
		t.Run(x.name, func(t *testing.T) {
			d.start(t, 1, x)
			defer d.stop(t)
			r := d.check(t)
			whole := r.opening == nil && len(r.store)+len(r.sessions) == 0
			if isHarmless(x.name) && !whole {
				t.Errorf("a whole log is reported: %v", r)
			}
			if strings.HasSuffix(x.name, "of control") && !isHarmless(x.name) && !strings.Contains(x.name, end) && whole {
				t.Error("the damage of the control stream is not reported")
			}
		})
	}
}

// Of three servers, the files of one or of all are damaged. The majority restores the files of
// one; what all have lost is reported.
func TestDamageOfCluster(t *testing.T) {
	t.Parallel()
	d := newDamaged(t, 3)
	if testsize.Of() < testsize.Long { // servers that start again elect leaders for 10 s or more
		d.delete(t, "control")
		d.check(t)
		return
	}
	d.keep(t)
	flip := func(b []byte) []byte { return flipped(b, len(b)/2) }
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	all := []struct {
		damage
		nodes int
	}{
		{edited("truncate", "0", cut), 1}, {edited("flip", "0", flip), 1}, {damage{name: "none"}, 0}, {edited("flip", "control", flip), 3},
		{edited("truncate", "0", cut), 3}, {edited("flip", "0", flip), 3}, {edited("flip", "control", flip), 1},
		{removed("0", "msgs/*.blk"), 1}, {removed("0", "msgs/*.blk"), 3},
		{withoutJournals(edited("truncate", "0", cut)), 3}, {withoutJournals(edited("flip", "0", flip)), 3}, {withoutJournals(edited("flip", "control", flip)), 3},
		{withoutJournals(removed("0", "msgs/*.blk")), 3}, {withoutJournals(removed("0", "")), 3}, {withoutJournals(removed("control", "")), 3},
		{removed("0", ""), 1}, {removed("0", ""), 3}, {removed("control", ""), 1}, {removed("control", ""), 3},
		{damage{name: "delete stream 0", request: func(t *testing.T, d *damaged) { d.delete(t, "0") }}, 3},
		{damage{name: "delete stream control", request: func(t *testing.T, d *damaged) { d.delete(t, "control") }}, 3},
	}
	for _, x := range all {
		t.Run(fmt.Sprintf("%s on %d servers", x.name, x.nodes), func(t *testing.T) {
			d.start(t, x.nodes, x.damage)
			defer d.stop(t)
			d.check(t)
		})
	}
}

// flipped flips a bit of a text, at a place or after it. With another length of a message
// in a file, the server would not start.
func flipped(b []byte, at int) []byte {
	isText := func(i int) bool {
		return !bytes.ContainsFunc(b[i-8:i+8], func(r rune) bool { return r < ' ' || r > '~' })
	}
	for i := max(at, 8); i < len(b)-8; i++ {
		if isText(i) {
			b[i] ^= 4
			return b
		}
	}
	b[at] ^= 4
	return b
}

// isHarmless reports whether the server finds what it needs without the damaged file.
func isHarmless(name string) bool {
	return name == "none" || strings.HasPrefix(name, "remove msgs/index.db")
}

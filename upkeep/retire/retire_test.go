package retire_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/retire"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

var (
	longAgo = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	recent  = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	before  = time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
)

// world is a log whose clock the test sets.
type world struct {
	*testing.T
	log *eventlog.Log
	now time.Time
}

func newWorld(t *testing.T, store eventlog.Store) *world {
	w := &world{T: t, now: longAgo}
	w.log = eventlog.Open(store, eventlog.Options{Now: func() time.Time { w.now = w.now.Add(time.Second); return w.now }, SpillOver: 400})
	t.Cleanup(func() { _ = w.log.Close() })
	return w
}

func (w *world) say(session, text string) {
	w.Helper()
	e := event.New(event.Message{Role: event.User, Parts: []event.Part{event.Text(text)}})
	e.Timestamp = time.Time{}
	if _, err := w.log.Append(w.Context(), session, eventlog.Any(), e); err != nil {
		w.Fatal(err)
	}
}

func (w *world) fork(parent, id string) {
	w.Helper()
	if _, err := fork.At(w.Context(), w.log, parent, fork.Head(), fork.Options{ID: id}); err != nil {
		w.Fatal(err)
	}
}

// fill makes idle and used sessions: alone is idle; both are a parent and its fork, both
// idle; old-parent is idle and has a used fork; new-parent is used and has an idle fork.
func (w *world) fill() {
	for _, id := range []string{"alone", "both", "old-parent", "new-parent"} {
		w.say(id, "hello")
		w.say(id, strings.Repeat("a long text ", 50))
	}
	w.fork("both", "both-fork")
	w.fork("new-parent", "idle-fork")
	w.say("idle-fork", "an end")
	w.now = recent
	w.fork("old-parent", "used-fork")
	w.say("new-parent", "used again")
	w.say("used", "just now")
}

func (w *world) plan() *retire.Plan {
	w.Helper()
	p, err := retire.NewPlan(w.Context(), w.log, before)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

func ids(sessions []retire.Session) (all []string) {
	for _, s := range sessions {
		all = append(all, s.ID)
	}
	slices.Sort(all)
	return all
}

// lines are the sessions of a log with their lines.
func lines(t *testing.T, log *eventlog.Log) map[string]string {
	t.Helper()
	all := map[string]string{}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range log.Read(t.Context(), info.ID, eventlog.All().Own()) {
			if err != nil {
				t.Fatal(err)
			}
			all[info.ID] += string(e.Line()) + "\n"
		}
	}
	return all
}

func stores(t *testing.T) map[string]eventlog.Store {
	return map[string]eventlog.Store{"jsonl": jsonl.New(t.TempDir()), "sqlite": sqlite.New(filepath.Join(t.TempDir(), "log.db"))}
}

var idle = []string{"alone", "both", "both-fork", "idle-fork"}

func TestPlan(t *testing.T) {
	w := newWorld(t, jsonl.New(t.TempDir()))
	w.fill()
	p := w.plan()
	if diff := cmp.Diff(idle, ids(p.Sessions)); diff != "" {
		t.Error(diff)
	}
	var kept []string
	for _, k := range p.Kept {
		kept = append(kept, k.ID+": "+k.Reason)
	}
	if diff := cmp.Diff([]string{`old-parent: its fork "used-fork" stays`}, kept); diff != "" {
		t.Error(diff)
	}
	order := []string{}
	for _, s := range p.Sessions {
		order = append(order, s.ID)
	}
	if slices.Index(order, "both-fork") > slices.Index(order, "both") {
		t.Errorf("a parent comes before its fork: %v", order)
	}
}

// A retirement that is killed after any step, and run again, loses nothing: each session
// is in the store or in an archive that verifies. Then convert brings all back.
func TestKilledAfterAnyStep(t *testing.T) {
	for name := range stores(t) {
		for stop := range 5 {
			t.Run(fmt.Sprintf("%s/%d", name, stop), func(t *testing.T) {
				w := newWorld(t, stores(t)[name])
				w.fill()
				want := lines(t, w.log)
				dir := t.TempDir()
				steps(w, dir, stop)
				checkTogether(t, want, w.log, dir)
				steps(w, dir, 5)
				checkTogether(t, want, w.log, dir)
				if left := lines(t, w.log); len(left) != 4+1 { // with the notes of the store
					t.Errorf("%d sessions are left", len(left))
				}
				archive := eventlog.Open(jsonl.New(dir, jsonl.Options{ReadOnly: true}))
				defer archive.Close()
				for _, err := range transfer.Convert(t.Context(), w.log, archive) {
					if err != nil && !errors.Is(err, eventlog.ErrConflict) {
						t.Fatal(err)
					}
				}
				back := lines(t, w.log)
				delete(back, storenotes.Session)
				if diff := cmp.Diff(want, back); diff != "" {
					t.Errorf("brought back: %s", diff)
				}
			})
		}
	}
}

// steps runs the first n steps of a retirement: 1 plans, 2 archives some, 3 archives all,
// 4 writes the manifest, 5 removes.
func steps(w *world, dir string, n int) {
	w.Helper()
	p := w.plan()
	archive := func(q *retire.Plan) {
		dst := eventlog.Open(jsonl.New(dir))
		if err := errors.Join(q.Archive(w.Context(), dst, w.log), dst.Close()); err != nil {
			w.Fatal(err)
		}
	}
	if n >= 2 {
		some := *p
		some.Sessions = slices.Clone(p.Sessions[:2])
		archive(&some)
	}
	if n >= 3 {
		archive(p)
	}
	if n >= 4 {
		if _, err := p.WriteManifest(dir, recent); err != nil {
			w.Fatal(err)
		}
	}
	if n == 4 { // killed after the first removal
		first := *p
		first.Sessions = slices.Clone(p.Sessions[:1])
		p = &first
	}
	if n >= 4 {
		if err := p.Remove(w.Context(), w.log); err != nil {
			w.Fatal(err)
		}
	}
}

// checkTogether checks that each session is whole in the log or in the archive, and that
// the archive verifies.
func checkTogether(t *testing.T, want map[string]string, log *eventlog.Log, dir string) {
	t.Helper()
	archive := eventlog.Open(jsonl.New(dir, jsonl.Options{ReadOnly: true}))
	defer archive.Close()
	inLog, inArchive := lines(t, log), lines(t, archive)
	for id, text := range want {
		if inLog[id] != text && inArchive[id] != text {
			t.Errorf("session %q is whole nowhere", id)
		}
	}
	for id := range inArchive {
		report, err := verify.Session(t.Context(), archive, id)
		if err != nil || report.Damaged() > 0 {
			t.Errorf("archived session %q: %v, %v", id, report.Defects, err)
		}
	}
}

func TestManifest(t *testing.T) {
	w := newWorld(t, jsonl.New(t.TempDir()))
	w.fill()
	dir := t.TempDir()
	p := w.plan()
	dst := eventlog.Open(jsonl.New(dir))
	if err := errors.Join(p.Archive(t.Context(), dst, w.log), dst.Close()); err != nil {
		t.Fatal(err)
	}
	first, err := p.WriteManifest(dir, recent)
	if err != nil {
		t.Fatal(err)
	}
	second, err := p.WriteManifest(dir, recent)
	if err != nil || first == second || filepath.Base(first) != "retired-20261101T000000Z.json" {
		t.Errorf("manifests %s and %s, %v", first, second, err)
	}
	text, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Manifest string    `json:"manifest"`
		Retired  time.Time `json:"retired"`
		Before   time.Time `json:"before"`
		Parents  []string  `json:"parents"`
		Sessions []struct {
			Session string    `json:"session"`
			Events  int64     `json:"events"`
			Seq     int64     `json:"seq"`
			Hash    string    `json:"hash"`
			Last    time.Time `json:"last_activity"`
		} `json:"sessions"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.Manifest != "convlog-retired/1" || !m.Retired.Equal(recent) || !m.Before.Equal(before) || !slices.Equal(m.Parents, []string{"new-parent"}) {
		t.Errorf("manifest: %+v", m)
	}
	for _, s := range m.Sessions {
		head, err := w.log.Head(t.Context(), s.Session)
		if err != nil || head.Seq != s.Seq || head.Hash.String() != s.Hash || s.Events == 0 || s.Last.After(before) {
			t.Errorf("session %+v, %v", s, err)
		}
	}
	if len(m.Sessions) != len(idle) {
		t.Errorf("%d sessions", len(m.Sessions))
	}
	if _, err := p.WriteManifest(filepath.Join(dir, "missing"), recent); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
	report, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(report, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".retired") }) {
		t.Errorf("files: %v, %v", report, err)
	}
}

// A session that is used after the plan stays: before the copy, and after it.
func TestUsedMeanwhile(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, store)
			w.fill()
			p := w.plan()
			w.say("both-fork", "still here")
			dst := eventlog.Open(jsonl.New(t.TempDir()))
			defer dst.Close()
			if err := p.Archive(t.Context(), dst, w.log); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"alone", "idle-fork"}, ids(p.Sessions)); diff != "" {
				t.Error(diff)
			}
			w.say("alone", "me too")
			w.fork("idle-fork", "new-fork")
			if err := p.Remove(t.Context(), w.log); err != nil || len(p.Removed) > 0 {
				t.Errorf("removed %v, %v", ids(p.Removed), err)
			}
			if len(p.Kept) != 5 || len(lines(t, w.log)) != 9 {
				t.Errorf("kept: %+v", p.Kept)
			}
		})
	}
}

// An archive with another history of a session prevents the removal.
func TestArchiveWithAnotherHistory(t *testing.T) {
	w := newWorld(t, jsonl.New(t.TempDir()))
	w.fill()
	other := newWorld(t, jsonl.New(t.TempDir()))
	other.say("alone", "another hello")
	p := w.plan()
	if err := p.Archive(t.Context(), other.log, w.log); !errors.Is(err, eventlog.ErrConflict) {
		t.Errorf("archive: %v", err)
	}
}

// Damage is no reason to lose a session.
func TestDamagedSessionsStay(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, jsonl.New(dir))
	for _, text := range []string{"the first", "the middle", "the last"} {
		w.say("damaged", text)
	}
	w.fill()
	flip(t, filepath.Join(dir, "damaged.jsonl"), "the middle") // a listing reads the ends only
	p := w.plan()
	dst := eventlog.Open(jsonl.New(t.TempDir()))
	defer dst.Close()
	err := p.Archive(t.Context(), dst, w.log)
	var source *transfer.SourceError
	if !errors.As(err, &source) || source.Session != "damaged" {
		t.Errorf("a damaged session is archived: %v", err)
	}
	flip(t, filepath.Join(dir, "used.jsonl"), `"crc"`)
	if _, err := retire.NewPlan(t.Context(), w.log, before); !errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), `"used" is unreadable and may be a fork`) {
		t.Errorf("plan with an unreadable session: %v", err)
	}
}

// flip changes a byte of the text in a file.
func flip(t *testing.T, path, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(b), text)
	if at < 0 {
		t.Fatalf("no %q in %s", text, path)
	}
	b[at] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

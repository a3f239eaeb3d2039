package transfer_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/internal/storenotes"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/transfer"
	"github.com/convlog/convlog/upkeep/verify"
)

// A tree of random sessions goes through a stream into another store: it is drawn the
// same, costs the same, verifies, and has the same lines. A second import adds nothing.
func TestTreesTravel(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		addChildren(r, l)
		var stream bytes.Buffer
		_, err := transfer.ExportTree(garden.Bg, l.Log, &stream, l.Names...)
		l.Allow(err)
		dst := eventlog.Open(memory.New())
		defer func() { _ = dst.Close() }()
		first, err := transfer.Import(garden.Bg, dst, bytes.NewReader(stream.Bytes()))
		l.Allow(err)
		garden.Same(r, "sessions", len(l.Names), len(first))
		again, err := transfer.Import(garden.Bg, dst, bytes.NewReader(stream.Bytes()))
		l.Allow(err)
		for _, s := range again {
			garden.Same(r, "stored again of "+s.Session, int64(0), s.Stored)
		}
		garden.Same(r, "drawing", drawn(l, l.Log), drawn(l, dst))
		for _, name := range l.Names {
			garden.Same(r, "lines of "+name, exportOf(l, l.Log, name), exportOf(l, dst, name))
		}
		for _, root := range []string{"s0", l.Names[len(l.Names)-1]} {
			want, err := stats.LoadTreeCost(garden.Bg, l.Log, root)
			l.Allow(err)
			got, err := stats.LoadTreeCost(garden.Bg, dst, root)
			l.Allow(err)
			garden.Same(r, "cost of the tree of "+root, want, got)
		}
	})
}

// addChildren adds child runs: sessions of their own, and forks and copies that their
// original started. A session starts later sessions only, so there is no cycle.
func addChildren(r *rapid.T, l *garden.Life) {
	for i := range rapid.IntRange(0, 4).Draw(r, "children") {
		parent := rapid.IntRange(0, len(l.Names)-1).Draw(r, "parent")
		child := rapid.IntRange(parent+1, len(l.Names)).Draw(r, "child")
		if child == len(l.Names) {
			id := fmt.Sprint("child", i)
			start := event.Session{Agent: "helper"}
			if rapid.Bool().Draw(r, "names its parent") {
				start.Parent = event.SessionParent{SessionID: l.Names[parent], CallID: "c"}
			}
			l.Append(id, event.New(start))
			l.Append(id, priced(event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("so")}}), i+1))
			l.Names = append(l.Names, id)
		}
		for _, state := range []event.ChildState{event.ChildStarted, event.ChildMerged}[:rapid.IntRange(1, 2).Draw(r, "events")] {
			l.Append(l.Names[parent], event.New(event.Child{State: state, ChildID: fmt.Sprint("run", i), ChildSessionID: l.Names[child],
				Usage: event.Usage{OutputTokens: 7}}))
		}
	}
}

func priced(e event.Event, cost int) event.Event {
	e.Cost = event.Cost(cost)
	return e
}

// drawn draws all trees of a log.
func drawn(l *garden.Life, log *eventlog.Log) (rows []string) {
	forest, err := fork.Tree(garden.Bg, log)
	l.Allow(err)
	for depth, n := range forest.All() {
		if n.ID == storenotes.Session { // each store has notes of its own
			continue
		}
		rows = append(rows, fmt.Sprintln(depth, n.ID, n.Kind, n.Parent, n.Seq, n.Label, n.Missing, n.Partial, n.Events(), n.Last))
	}
	return rows
}

// exportOf is the export of a session.
func exportOf(l *garden.Life, log *eventlog.Log, session string) string {
	var text bytes.Buffer
	l.Allow(transfer.Export(garden.Bg, log, &text, session))
	return text.String()
}

// kin is a log with a session "a", its fork "f", a copy "c", and child runs: "a.b" of
// "a", "a.b.c" of "a.b", and "f2", a fork of "f" that "f" started. A body of "a" is in a
// blob.
func kin(t *testing.T) *garden.Garden {
	log := eventlog.Open(memory.New())
	t.Cleanup(func() { _ = log.Close() })
	g := &garden.Garden{T: t, Log: log}
	body, err := log.PutBlob(t.Context(), strings.NewReader("a picture"))
	g.Allow(err)
	g.Append("a", event.New(event.Artifact{ArtifactID: "1", Name: "picture", Body: body}), event.UserMessage("hello"))
	g.Append("a", childOf("a.b"))
	g.Append("a.b", event.New(event.Session{Parent: event.SessionParent{SessionID: "a", Seq: 3}}), childOf("a.b.c"))
	g.Append("a.b.c", event.UserMessage("deep"))
	_, err = fork.At(t.Context(), log, "a", fork.Head(), fork.Options{ID: "f", Force: true})
	g.Allow(err)
	_, err = fork.At(t.Context(), log, "f", fork.Head(), fork.Options{ID: "f2", Force: true})
	g.Allow(err)
	g.Append("f", childOf("f2"))
	_, err = fork.Copy(t.Context(), log, "a", fork.CopyOptions{ID: "c"})
	g.Allow(err)
	g.Append("other", event.UserMessage("not of the family"))
	return g
}

func childOf(session string) event.Event {
	return event.New(event.Child{State: event.ChildStarted, ChildID: "run of " + session, ChildSessionID: session})
}

func treeOf(g *garden.Garden, sessions ...string) string {
	g.T.Helper()
	var stream bytes.Buffer
	_, err := transfer.ExportTree(garden.Bg, g.Log, &stream, sessions...)
	g.Allow(err)
	return stream.String()
}

// sessionsOf lists the sessions of a stream in the order of their last lines, and where
// these lines end, without their newlines.
func sessionsOf(t *testing.T, stream string) (sessions []string, ends []int) {
	offset := 0
	for text := range strings.Lines(stream) {
		offset += len(text)
		e, err := event.Parse([]byte(strings.TrimSuffix(text, "\n")), "")
		if err != nil {
			continue // the list, or a blob
		}
		if n := len(sessions); n == 0 || sessions[n-1] != e.SessionID {
			sessions, ends = append(sessions, e.SessionID), append(ends, 0)
		}
		ends[len(ends)-1] = offset - 1
	}
	return sessions, ends
}

// The tree of a session has its parents too, and no other session. A session comes after
// its parents.
func TestTreesOfSessions(t *testing.T) {
	g := kin(t)
	for root, want := range map[string]string{
		"a":     "a a.b c f a.b.c f2",
		"a.b":   "a.b a.b.c",
		"f":     "a f f2",
		"f2":    "a f f2",
		"c":     "c",
		"other": "other",
	} {
		sessions, _ := sessionsOf(t, treeOf(g, root))
		if got := strings.Join(sessions, " "); got != want {
			t.Errorf("tree of %s: %s, want %s", root, got, want)
		}
	}
	sessions, _ := sessionsOf(t, treeOf(g, "f2", "a.b", "f2"))
	if got := strings.Join(sessions, " "); got != "a f f2 a.b a.b.c" {
		t.Errorf("two trees: %s", got)
	}
}

// A stream that is cut at any byte imports the whole sessions before the cut, and nothing
// of the session that it cuts. The error names that session and the place.
func TestTreesThatAreCut(t *testing.T) {
	stream := treeOf(kin(t), "a")
	sessions, ends := sessionsOf(t, stream)
	list := strings.IndexByte(stream, '\n')
	for n := range len(stream) + 1 {
		if n != len(stream) && !testsize.Every(n, 10) {
			continue
		}
		log := eventlog.Open(memory.New())
		_, err := transfer.Import(t.Context(), log, strings.NewReader(stream[:n]))
		whole := 0
		for whole < len(ends) && n >= ends[whole] {
			whole++
		}
		var cut *transfer.TreeError
		switch isTree := errors.As(err, &cut); {
		case n == 0 || whole == len(ends):
			if err != nil {
				t.Fatalf("cut at %d: %v", n, err)
			}
		case n < len(`{"tree":`):
			if !errors.Is(err, eventlog.ErrCorrupt) && !errors.Is(err, event.ErrForeign) {
				t.Fatalf("cut at %d, in the name of the list: %v", n, err)
			}
		case !isTree || !cut.Cut || cut.Offset != int64(n) || n < list && cut.Session != "" || n >= list && cut.Session != sessions[whole]:
			t.Fatalf("cut at %d: %v", n, err)
		}
		var got []string
		for info, err := range log.Sessions(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, info.ID)
		}
		if len(got) != whole {
			t.Fatalf("cut at %d: imported %q, want the first %d of %q", n, got, whole, sessions)
		}
		for _, session := range sessions[:whole] {
			if report, err := verify.Session(t.Context(), log, session); err != nil || len(report.Defects) > 0 {
				t.Fatalf("cut at %d: %v, %v", n, report.Defects, err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A reader that fails cuts the stream too.
func TestTreesOfAFailingReader(t *testing.T) {
	stream := treeOf(kin(t), "a")
	log := eventlog.Open(memory.New())
	defer log.Close()
	_, ends := sessionsOf(t, stream)
	_, err := transfer.Import(t.Context(), log, &breaking{strings.NewReader(stream[:ends[0]+9])})
	var cut *transfer.TreeError
	if !errors.As(err, &cut) || cut.Session != "a.b" || !cut.Cut || !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

// errMismatch stands for a *transfer.TreeError of a stream that differs from its list.
var errMismatch = errors.New("mismatch")

var errBroken = errors.New("the connection broke")

// breaking is a reader that fails at its end.
type breaking struct{ *strings.Reader }

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil {
		err = errBroken
	}
	return n, err
}

// A stream that differs from its list is refused with a typed error.
func TestHostileTrees(t *testing.T) {
	g := kin(t)
	lines := strings.SplitAfter(strings.TrimSuffix(treeOf(g, "a"), "\n"), "\n")
	list, blob := lines[0], lines[1]
	of := func(session string) (text string) {
		for _, line := range lines {
			line = strings.TrimSuffix(line, "\n")
			if e, err := event.Parse([]byte(line), ""); err == nil && e.SessionID == session {
				text += line + "\n"
			}
		}
		return text
	}
	entry := func(session string) string {
		head := g.Head(session)
		return fmt.Sprintf(`{"session":%q,"seq":%d,"hash":"%s"}`, session, head.Seq, head.Hash)
	}
	tree := func(entries ...string) string { return `{"tree":[` + strings.Join(entries, ",") + "]}\n" }
	a := blob + of("a")
	for name, test := range map[string]struct {
		stream  string
		want    error
		session string // that the error names
		stored  int    // sessions
	}{
		"a session twice in the list":       {tree(entry("a"), entry("a")) + a, errMismatch, "a", 0},
		"a session twice in the stream":     {list + a + a, errMismatch, "a.b", 1},
		"a session that is not listed":      {tree(entry("a")) + a + of("c"), errMismatch, "c", 1},
		"a session left out":                {list + a + of("c"), errMismatch, "a.b", 1},
		"a listed order that is not kept":   {tree(entry("a.b.c"), entry("a")) + a + of("a.b.c"), errMismatch, "a.b.c", 0},
		"a fork before its parent":          {tree(entry("f"), entry("a")) + of("f") + a, errMismatch, "f", 0},
		"a fork without its parent":         {tree(entry("f")) + of("f"), eventlog.ErrNotFound, "", 0},
		"a session that ends early":         {strings.Replace(list, `"a","seq":3`, `"a","seq":2`, 1) + a, errMismatch, "a", 0},
		"another end":                       {strings.Replace(list, g.Head("a").Hash.String(), g.Head("c").Hash.String(), 1) + a, errMismatch, "a", 0},
		"a list that begins again":          {list + a + list, errMismatch, "a.b", 1},
		"a list that is no list":            {`{"tree":{}}` + "\n" + a, errMismatch, "", 0},
		"a session without an id":           {tree(`{"session":"","seq":1,"hash":"` + g.Head("a").Hash.String() + `"}`), errMismatch, "", 0},
		"a session without events":          {strings.Replace(list, `"a","seq":3`, `"a","seq":0`, 1) + a, errMismatch, "a", 0},
		"a blob that does not match":        {list + strings.Replace(blob, `"base64":"`, `"base64":"AAAA`, 1) + of("a"), eventlog.ErrCorrupt, "", 0},
		"a blob that is missing":            {list + of("a"), eventlog.ErrCorrupt, "", 0},
		"a changed line":                    {list + blob + strings.Replace(of("a"), "hello", "hullo", 1), eventlog.ErrCorrupt, "", 0},
		"a line missing":                    {list + blob + strings.SplitAfter(of("a"), "\n")[0] + strings.SplitAfter(of("a"), "\n")[2], eventlog.ErrCorrupt, "", 0},
		"two trees, one after the other":    {tree(entry("a")) + a + tree(entry("c")) + blob + of("c"), nil, "", 2},
		"a tree after a session on its own": {blob + of("c") + tree(entry("a")) + a, nil, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(memory.New())
			defer log.Close()
			imported, err := transfer.Import(t.Context(), log, strings.NewReader(test.stream))
			var tree *transfer.TreeError
			if errors.As(err, &tree) && !tree.Cut && !errors.Is(err, runlog.ErrRunCycle) && tree.Session == test.session {
				err = errMismatch
			}
			if !errors.Is(err, test.want) || len(imported) != test.stored {
				t.Fatalf("%d sessions, %v", len(imported), err)
			}
			if isTree := tree != nil; isTree != (test.want == errMismatch) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A session that is below itself is refused: by the export, and by the import of a stream
// that some other program wrote. A plain export has no such rule.
func TestTreesWithACycle(t *testing.T) {
	for name, grow := range map[string]func(g *garden.Garden){
		"the child of its child": func(g *garden.Garden) { g.Append("a", childOf("b")); g.Append("b", childOf("a")) },
		"by the parent it names": func(g *garden.Garden) {
			g.Append("a", event.UserMessage("hello"))
			g.Append("b", event.New(event.Session{Parent: event.SessionParent{SessionID: "a"}}), childOf("a"))
		},
		"the child of its fork": func(g *garden.Garden) {
			g.Append("a", event.UserMessage("hello"))
			_, err := fork.At(garden.Bg, g.Log, "a", fork.Head(), fork.Options{ID: "b", Force: true})
			g.Allow(err)
			g.Append("b", childOf("a"))
		},
		"the child of its copy's child": func(g *garden.Garden) {
			g.Append("a", event.UserMessage("hello"))
			_, err := fork.Copy(garden.Bg, g.Log, "a", fork.CopyOptions{ID: "b"})
			g.Allow(err)
			g.Append("b", childOf("c"))
			g.Append("c", childOf("a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(memory.New())
			defer log.Close()
			g := &garden.Garden{T: t, Log: log}
			grow(g)
			var text bytes.Buffer
			if _, err := transfer.ExportTree(t.Context(), log, &text, "a"); !errors.Is(err, runlog.ErrRunCycle) || text.Len() > 0 {
				t.Errorf("export: %v, %d bytes", err, text.Len())
			}
			var stream string
			var entries []string
			for info, err := range log.Sessions(t.Context()) {
				g.Allow(err)
				head := info.Last.Head()
				entries = append(entries, fmt.Sprintf(`{"session":%q,"seq":%d,"hash":"%s"}`, info.ID, head.Seq, head.Hash))
				text.Reset()
				g.Allow(transfer.Export(t.Context(), log, &text, info.ID))
				for line := range strings.Lines(text.String()) {
					if e, err := event.Parse([]byte(strings.TrimSuffix(line, "\n")), ""); err == nil && e.SessionID == info.ID {
						stream += line
					}
				}
			}
			for list, want := range map[string]error{"": nil, `{"tree":[` + strings.Join(entries, ",") + "]}\n": runlog.ErrRunCycle} {
				dst := eventlog.Open(memory.New())
				imported, err := transfer.Import(t.Context(), dst, strings.NewReader(list+stream))
				var tree *transfer.TreeError
				if !errors.Is(err, want) || (err != nil) != errors.As(err, &tree) {
					t.Errorf("import: %v", err)
				}
				if refused := len(entries) - len(imported); (err != nil) != (refused == 1) {
					t.Errorf("import: %d sessions, %v", len(imported), err)
				}
				g.Allow(dst.Close())
			}
		})
	}
}

// A writer that appends during an export changes nothing of the stream: each session ends
// at its listed head.
func TestTreesWhileOthersWrite(t *testing.T) {
	g := kin(t)
	appending := &writer{write: func() { g.Append("a", event.UserMessage("more")); g.Append("f", event.UserMessage("more")) }}
	if _, err := transfer.ExportTree(t.Context(), g.Log, appending, "a"); err != nil {
		t.Fatal(err)
	}
	dst := eventlog.Open(memory.New())
	defer dst.Close()
	if _, err := transfer.Import(t.Context(), dst, &appending.text); err != nil {
		t.Error(err)
	}
}

// writer calls write before each write.
type writer struct {
	text  bytes.Buffer
	write func()
}

func (w *writer) Write(p []byte) (int, error) {
	w.write()
	return w.text.Write(p)
}

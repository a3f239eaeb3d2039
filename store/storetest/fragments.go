package storetest

import (
	"context"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var fragmentCases = []testCase{
	{
		Name:        "all lines in order",
		Explanation: "Salvager: the fragments of an undamaged session are the lines that Read returns, with their paths and sizes, and no other bytes.",
		Needs:       []suite.Need{suite.Salvager},
		Run:         testFragments,
	},
	{
		Name:        "own lines",
		Explanation: "Salvager: the fragments of a fork are its own lines, without the lines of its parent. The fragments of a session contain no lines of other sessions.",
		Needs:       []suite.Need{suite.Salvager},
		Run:         testFragmentsOwn,
	},
	{
		Name:        "missing session",
		Explanation: "Salvager: the fragments of a missing session are ErrNotFound.",
		Needs:       []suite.Need{suite.Salvager},
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 1)
			_, err := suite.Collect(suite.Ability[eventlog.Salvager](t, t.Store()).Fragments(t.Ctx, "b"))
			t.WantErr(eventlog.ErrNotFound, err)
		},
	},
	{
		Name:        "concurrent appends",
		Explanation: "Salvager: other callers can append while a caller reads fragments. The fragments are lines of the session in order, and at least the lines present at the start.",
		Needs:       []suite.Need{suite.Salvager},
		Run:         testFragmentsMeanwhile,
	},
	{
		Name:        "context and close",
		Explanation: "Salvager: reading fragments ends when the context ends or the store is closed.",
		Needs:       []suite.Need{suite.Salvager},
		Run:         testFragmentsEnd,
	},
}

func testFragments(t *env) {
	l := t.Main()
	for n := range 30 {
		t.Append(l, "a", eventlog.Any(), suite.NoteWithMetadata(n, `{"k":"`+suite.Text("body ", 1+n*997)+`"}`))
		t.Append(l, "a", eventlog.Any(), suite.Notes(1+n%3)...)
	}
	t.Append(l, "a", eventlog.Any(), suite.NewEvent("test:big", `"`+suite.Text("x", 200<<10)+`"`))
	want := t.Lines(l, "a")
	t.NowAndAfterReopen(func(l *eventlog.Log) {
		fragments := t.fragments(l.Store(), "a")
		t.WantEqual("lines", want, linesIn(fragments))
		bytes := int64(0)
		for i, f := range fragments {
			if f.Err != nil || f.Path == "" || f.Bytes != int64(len(want[i]))+1 || f.Offset != -1 && f.Offset != bytes {
				t.Fatalf("fragment %d of %d bytes at %q %d after %d: %v", i, f.Bytes, f.Path, f.Offset, bytes, f.Err)
			}
			bytes += f.Bytes
		}
		infos, err := suite.Collect(l.Sessions(t.Ctx))
		t.Must(err)
		t.WantEqual("bytes", infos[0].Bytes, bytes)
	})
}

// fragments reads all fragments of a session.
func (t *env) fragments(s eventlog.Store, session string) []eventlog.Fragment {
	t.Helper()
	var fragments []eventlog.Fragment
	for f, err := range suite.Ability[eventlog.Salvager](t, s).Fragments(t.Ctx, session) {
		t.Must(err)
		f.Event = f.Event.Clone()
		fragments = append(fragments, f)
	}
	return fragments
}

func linesIn(fragments []eventlog.Fragment) []string {
	lines := make([]string, len(fragments))
	for i := range fragments {
		lines[i] = string(fragments[i].Event.Line())
	}
	return lines
}

func testFragmentsOwn(t *env) {
	l := t.Main()
	t.Append(l, "a", eventlog.New(), suite.Notes(3)...)
	t.Append(l, "b", eventlog.New(), t.ForkAt("a", 3))
	t.Fill(l, "b", 2)
	t.WantEqual("own lines", t.Lines(l, "b"), linesIn(t.fragments(t.Store(), "b")))
	t.WantEqual("own lines of the parent", t.Lines(l, "a"), linesIn(t.fragments(t.Store(), "a")))
}

func testFragmentsMeanwhile(t *env) {
	l := t.Main()
	t.Fill(l, "a", 200)
	due, open := int64(1), 0
	for f, err := range suite.Ability[eventlog.Salvager](t, t.Store()).Fragments(t.Ctx, "a") {
		t.Must(err)
		if f.Err != nil || f.Event.Seq != due {
			t.Fatalf("got %v, seq %d, want seq %d", f.Err, f.Event.Seq, due)
		}
		due, open = due+1, f.Event.More()
		if due%10 == 0 {
			t.Append(l, "a", eventlog.Any(), suite.Notes(2)...)
		}
		if due > 10_000 {
			break
		}
	}
	if due <= 200 || open > 0 {
		t.Errorf("the fragments ended before seq %d; ended inside an append: %v", due, open > 0)
	}
}

func testFragmentsEnd(t *env) {
	t.Fill(t.Main(), "a", 50)
	salvager := suite.Ability[eventlog.Salvager](t, t.Store())
	ctx, cancel := context.WithCancel(t.Ctx)
	defer cancel()
	var failed error
	for _, err := range salvager.Fragments(ctx, "a") {
		cancel()
		failed = err
	}
	t.WantErr(context.Canceled, failed)
	t.Must(t.Store().Close())
	_, err := suite.Collect(salvager.Fragments(t.Ctx, "a"))
	t.WantErr(eventlog.ErrClosed, err)
}

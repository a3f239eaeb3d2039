package storetest

import (
	"context"

	"github.com/convlog/convlog/eventlog"
)

var fragmentCases = []testCase{
	{
		name:        "all lines in order",
		explanation: "Salvager: the fragments of an undamaged session are the lines that Read gives, each with its place and size, and no other bytes.",
		needs:       []Need{Salvager},
		run:         testFragments,
	},
	{
		name:        "the session's own",
		explanation: "Salvager: the fragments of a fork are its own lines, without those it shares with its parent; those of one session hold nothing of others.",
		needs:       []Need{Salvager},
		run:         testFragmentsOwn,
	},
	{
		name:        "missing session",
		explanation: "Salvager: the fragments of a session that does not exist are ErrNotFound.",
		needs:       []Need{Salvager},
		run: func(t *env) {
			t.fill(t.log(), "a", 1)
			_, err := collect(ability[eventlog.Salvager](t, t.store()).Fragments(t.ctx, "b"))
			t.wantErr(eventlog.ErrNotFound, err)
		},
	},
	{
		name:        "appends go on",
		explanation: "Salvager: appends go on while somebody reads fragments; what is read are lines of the session, in order, and at least those that stood at its start.",
		needs:       []Need{Salvager},
		run:         testFragmentsMeanwhile,
	},
	{
		name:        "end",
		explanation: "Salvager: reading fragments ends with the context, and with the store.",
		needs:       []Need{Salvager},
		run:         testFragmentsEnd,
	},
}

func testFragments(t *env) {
	l := t.log()
	for n := range 30 {
		t.append(l, "a", eventlog.Any(), noted(n, `{"k":"`+text("body ", 1+n*997)+`"}`))
		t.append(l, "a", eventlog.Any(), notes(1+n%3)...)
	}
	t.append(l, "a", eventlog.Any(), newEvent("test:big", `"`+text("x", 200<<10)+`"`))
	want := t.lines(l, "a")
	t.twice(func(l *eventlog.Log) {
		fragments := t.fragments(l.Store(), "a")
		t.same("lines", want, linesIn(fragments))
		bytes := int64(0)
		for i, f := range fragments {
			if f.Err != nil || f.Path == "" || f.Bytes != int64(len(want[i]))+1 || f.Offset != -1 && f.Offset != bytes {
				t.Fatalf("fragment %d of %d bytes at %q %d after %d: %v", i, f.Bytes, f.Path, f.Offset, bytes, f.Err)
			}
			bytes += f.Bytes
		}
		infos, err := collect(l.Sessions(t.ctx))
		t.must(err)
		t.same("bytes", infos[0].Bytes, bytes)
	})
}

// fragments reads all fragments of a session.
func (t *env) fragments(s eventlog.Store, session string) []eventlog.Fragment {
	t.Helper()
	fragments, err := collect(ability[eventlog.Salvager](t, s).Fragments(t.ctx, session))
	t.must(err)
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
	l := t.log()
	t.append(l, "a", eventlog.New(), notes(3)...)
	t.append(l, "b", eventlog.New(), t.forkAt("a", 3))
	t.fill(l, "b", 2)
	t.same("own lines", t.lines(l, "b"), linesIn(t.fragments(t.store(), "b")))
	t.same("own lines of the parent", t.lines(l, "a"), linesIn(t.fragments(t.store(), "a")))
}

func testFragmentsMeanwhile(t *env) {
	l := t.log()
	t.fill(l, "a", 200)
	due, open := int64(1), 0
	for f, err := range ability[eventlog.Salvager](t, t.store()).Fragments(t.ctx, "a") {
		t.must(err)
		if f.Err != nil || f.Event.Seq != due {
			t.Fatalf("found %v, seq %d, where seq %d is due", f.Err, f.Event.Seq, due)
		}
		due, open = due+1, f.Event.More()
		if due%10 == 0 {
			t.append(l, "a", eventlog.Any(), notes(2)...)
		}
		if due > 10_000 {
			break
		}
	}
	if due <= 200 || open > 0 {
		t.Errorf("ended before seq %d, inside an append: %v", due, open > 0)
	}
}

func testFragmentsEnd(t *env) {
	t.fill(t.log(), "a", 50)
	salvager := ability[eventlog.Salvager](t, t.store())
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	var failed error
	for _, err := range salvager.Fragments(ctx, "a") {
		cancel()
		failed = err
	}
	t.wantErr(context.Canceled, failed)
	t.must(t.store().Close())
	_, err := collect(salvager.Fragments(t.ctx, "a"))
	t.wantErr(eventlog.ErrClosed, err)
}

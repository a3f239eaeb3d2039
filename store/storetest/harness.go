package storetest

import (
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var harnessCases = []testCase{
	{
		Name:        "open empty",
		Explanation: "An empty store has no sessions.",
		Run: func(t *env) {
			infos, err := suite.Collect(t.Store().Sessions(t.Ctx))
			t.Must(err)
			t.WantEqual("number of sessions", 0, len(infos))
		},
	},
	{
		Name:        "read-only creates nothing",
		Explanation: "Opening an empty store for reading creates no files.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testReadOnlyOfNothing,
	},
	{
		Name:        "read-only reads",
		Explanation: "A read-only store returns the written events and changes no file.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testReadOnlyReads,
	},
	{
		Name:        "read-only rejects writes",
		Explanation: "A read-only store rejects every write with ErrReadOnly.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testReadOnlyRefuses,
	},
}

func testReadOnlyOfNothing(t *env) {
	before := t.Files()
	if s, err := t.Harness.OpenReadOnly(); err == nil {
		infos, err := suite.Collect(s.Sessions(t.Ctx))
		if err == nil && len(infos) > 0 {
			t.Errorf("found %d sessions in an empty store", len(infos))
		}
		_, err = suite.Collect(s.Read(t.Ctx, "a", eventlog.Span{}))
		if err == nil {
			t.Errorf("reading a missing session returned no error")
		}
		t.Must(s.Close())
	}
	t.WantEqual("files", before, t.Files())
}

func testReadOnlyReads(t *env) {
	t.Fill(t.Main(), "a", 5)
	want := t.Lines(t.Main(), "a")
	t.Close()
	before, bytesBefore := t.Files(), t.Contents()
	l := t.ReadOnly()
	t.WantEqual("lines", want, t.Lines(l, "a"))
	infos, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	t.WantEqual("number of sessions", 1, len(infos))
	t.WantVerified(l, "a")
	t.Close()
	t.WantEqual("files", before, t.Files())
	t.WantEqual("their contents", bytesBefore, t.Contents())
}

func testReadOnlyRefuses(t *env) {
	head := t.Fill(t.Main(), "a", 3)
	want := t.Lines(t.Main(), "a")
	l := t.ReadOnly()
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.At(head)} {
		t.WantAppendError(eventlog.ErrReadOnly, l, "a", x, suite.Note(9))
	}
	t.WantAppendError(eventlog.ErrReadOnly, l, "b", eventlog.New(), suite.Note(9))
	if remover, ok := eventlog.As[eventlog.Eraser](l.Store()); ok {
		t.WantErr(eventlog.ErrReadOnly, remover.RemoveSession(t.Ctx, "a", head))
	}
	if rewriter, ok := eventlog.As[eventlog.Eraser](l.Store()); ok {
		add := suite.BatchAfter("a", head, 1)
		t.WantErr(eventlog.ErrReadOnly, rewriter.Rewrite(t.Ctx, "a", head, nil, add))
	}
	if blobs, ok := eventlog.As[eventlog.Blobs](l.Store()); ok {
		_, _, err := blobs.PutBlob(t.Ctx, suite.NewReader("body"))
		t.WantErr(eventlog.ErrReadOnly, err)
	}
	t.WantEqual("lines after a reopen", want, t.Lines(t.Reopen(), "a"))
}

package storetest

import (
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var harnessCases = []testCase{
	{
		Name:        "open empty",
		Explanation: "A store that nothing was written to has no sessions.",
		Run: func(t *env) {
			infos, err := suite.Collect(t.Store().Sessions(t.Ctx))
			t.Must(err)
			t.Same("number of sessions", 0, len(infos))
		},
	},
	{
		Name:        "read-only creates nothing",
		Explanation: "Opening a store for reading where nothing is must not create anything.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testReadOnlyOfNothing,
	},
	{
		Name:        "read-only reads",
		Explanation: "A store opened for reading gives what was written, and leaves every file as it was.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testReadOnlyReads,
	},
	{
		Name:        "read-only refuses",
		Explanation: "A store opened for reading refuses every write with ErrReadOnly.",
		Needs:       []suite.Need{suite.ReadOnly},
		Run:         testReadOnlyRefuses,
	},
}

func testReadOnlyOfNothing(t *env) {
	before := t.Files()
	if s, err := t.Harness.OpenReadOnly(); err == nil {
		infos, err := suite.Collect(s.Sessions(t.Ctx))
		if err == nil && len(infos) > 0 {
			t.Errorf("found %d sessions where nothing was written", len(infos))
		}
		_, err = suite.Collect(s.Read(t.Ctx, "a", eventlog.Span{}))
		if err == nil {
			t.Errorf("reading a session that does not exist gave no error")
		}
		t.Must(s.Close())
	}
	t.Same("files", before, t.Files())
}

func testReadOnlyReads(t *env) {
	t.Fill(t.Main(), "a", 5)
	want := t.Lines(t.Main(), "a")
	t.Close()
	before, bytesBefore := t.Files(), t.Contents()
	l := t.ReadOnly()
	t.Same("lines", want, t.Lines(l, "a"))
	infos, err := suite.Collect(l.Sessions(t.Ctx))
	t.Must(err)
	t.Same("number of sessions", 1, len(infos))
	t.Sound(l, "a")
	t.Close()
	t.Same("files", before, t.Files())
	t.Same("their contents", bytesBefore, t.Contents())
}

func testReadOnlyRefuses(t *env) {
	head := t.Fill(t.Main(), "a", 3)
	want := t.Lines(t.Main(), "a")
	l := t.ReadOnly()
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.At(head)} {
		t.Refused(eventlog.ErrReadOnly, l, "a", x, suite.Note(9))
	}
	t.Refused(eventlog.ErrReadOnly, l, "b", eventlog.New(), suite.Note(9))
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
	t.Same("lines after a reopen", want, t.Lines(t.Reopen(), "a"))
}

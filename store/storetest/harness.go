package storetest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var harnessCases = []testCase{
	{
		name:        "lacks what it says",
		explanation: "An ability that the harness says the store lacks must not be found on it, and every other must be.",
		run:         testAbilities,
	},
	{
		name:        "open empty",
		explanation: "A store that nothing was written to has no sessions.",
		run: func(t *env) {
			infos, err := collect(t.store().Sessions(t.ctx))
			t.must(err)
			t.same("number of sessions", 0, len(infos))
		},
	},
	{
		name:        "read-only creates nothing",
		explanation: "Opening a store for reading where nothing is must not create anything.",
		needs:       []Need{ReadOnly},
		run:         testReadOnlyOfNothing,
	},
	{
		name:        "read-only reads",
		explanation: "A store opened for reading gives what was written, and leaves every file as it was.",
		needs:       []Need{ReadOnly},
		run:         testReadOnlyReads,
	},
	{
		name:        "read-only refuses",
		explanation: "A store opened for reading refuses every write with ErrReadOnly.",
		needs:       []Need{ReadOnly},
		run:         testReadOnlyRefuses,
	},
}

func testAbilities(t *env) {
	s := t.store()
	for need, has := range map[Need]bool{
		Blobs:     has[eventlog.Blobs](s),
		Locker:    has[eventlog.Locker](s),
		Rewriter:  has[eventlog.Eraser](s),
		Remover:   has[eventlog.Eraser](s),
		Versioner: has[eventlog.Versioner](s),
		Syncer:    has[eventlog.Syncer](s),
		Sweeper:   has[eventlog.Sweeper](s),
		Salvager:  has[eventlog.Salvager](s),
		Replacer:  has[eventlog.Salvager](s),
		Damage:    t.harness.Damage != nil,
		ReadOnly:  t.harness.OpenReadOnly != nil,
	} {
		if lacks := slices.Contains(t.harness.Lacks, need); lacks == has {
			t.Errorf("%s: the harness says lacking %v, found %v", need, lacks, has)
		}
	}
}

func has[T any](s eventlog.Store) bool {
	_, ok := eventlog.As[T](s)
	return ok
}

func testReadOnlyOfNothing(t *env) {
	before := t.files()
	if s, err := t.harness.OpenReadOnly(); err == nil {
		infos, err := collect(s.Sessions(t.ctx))
		if err == nil && len(infos) > 0 {
			t.Errorf("found %d sessions where nothing was written", len(infos))
		}
		_, err = collect(s.Read(t.ctx, "a", eventlog.Span{}))
		if err == nil {
			t.Errorf("reading a session that does not exist gave no error")
		}
		t.must(s.Close())
	}
	t.same("files", before, t.files())
}

func testReadOnlyReads(t *env) {
	t.fill(t.log(), "a", 5)
	want := t.lines(t.log(), "a")
	t.close()
	before, bytesBefore := t.files(), t.contents()
	l := t.readOnly()
	t.same("lines", want, t.lines(l, "a"))
	infos, err := collect(l.Sessions(t.ctx))
	t.must(err)
	t.same("number of sessions", 1, len(infos))
	t.sound(l, "a")
	t.close()
	t.same("files", before, t.files())
	t.same("their contents", bytesBefore, t.contents())
}

// contents are the digests of all files in the folder that holds the harness's
// path.
func (t *env) contents() []event.Digest {
	t.Helper()
	var digests []event.Digest
	for _, name := range t.files() {
		path := filepath.Join(filepath.Dir(t.harness.Path), name)
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			t.must(err)
			continue
		}
		body, err := os.ReadFile(path)
		t.must(err)
		digests = append(digests, event.DigestOf(body))
	}
	return digests
}

func testReadOnlyRefuses(t *env) {
	head := t.fill(t.log(), "a", 3)
	want := t.lines(t.log(), "a")
	l := t.readOnly()
	for _, x := range []eventlog.Expect{eventlog.Any(), eventlog.At(head)} {
		t.refused(eventlog.ErrReadOnly, l, "a", x, note(9))
	}
	t.refused(eventlog.ErrReadOnly, l, "b", eventlog.New(), note(9))
	if remover, ok := eventlog.As[eventlog.Eraser](l.Store()); ok {
		t.wantErr(eventlog.ErrReadOnly, remover.RemoveSession(t.ctx, "a", head))
	}
	if rewriter, ok := eventlog.As[eventlog.Eraser](l.Store()); ok {
		add := batchAfter("a", head, 1)
		t.wantErr(eventlog.ErrReadOnly, rewriter.Rewrite(t.ctx, "a", head, nil, add))
	}
	if blobs, ok := eventlog.As[eventlog.Blobs](l.Store()); ok {
		_, _, err := blobs.PutBlob(t.ctx, newReader("body"))
		t.wantErr(eventlog.ErrReadOnly, err)
	}
	t.same("lines after a reopen", want, t.lines(t.reopen(), "a"))
}

// files lists everything in the folder that holds the harness's path.
func (t *env) files() []string {
	t.Helper()
	if t.harness.Path == "" {
		return nil
	}
	parent := filepath.Dir(t.harness.Path)
	var names []string
	t.must(filepath.WalkDir(parent, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(parent, path)
		names = append(names, name)
		return err
	}))
	return names
}

// contained makes sure that nothing was written beside the harness's path.
func (t *env) contained() {
	t.Helper()
	base := ""
	if t.harness.Path != "" {
		base = filepath.Base(t.harness.Path)
	}
	for _, name := range t.files() {
		if name != "." && !strings.HasPrefix(name, base) {
			t.Errorf("the store wrote outside its own place: %q", name)
		}
	}
}

package projection_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
)

// damaged makes a snapshot unusable. It gets the seq of the head and returns the seq
// of the bad snapshot.
type damaged struct {
	name string
	do   func(g *garden.Garden) int64
	why  string
}

var damages = []damaged{
	{"redacted", func(g *garden.Garden) int64 {
		seq := good(g)
		_, err := erase.Redact(garden.Bg, g.Log, "s", []int64{seq}, erase.RedactOptions{Reason: "test"})
		g.Allow(err)
		return seq
	}, "redacted"},
	{"of another version", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.State = body(g, 2, `{"seen":["no"]}`) })
	}, "other_version"},
	{"digest of another body", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.BodyDigest = event.DigestOf([]byte("other")) })
	}, "bad_digest"},
	{"no object", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.State = []byte(`[1,2]`) })
	}, "unreadable"},
	{"parts of another form", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.State = []byte(`{"test:path":"x","test:session":"y"}`) })
	}, "unreadable"},
	{"part without a state", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.State = []byte(`{"test:path":{"version":1},"test:session":{"version":1}}`) })
	}, "unreadable"},
	{"state of another shape", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.State = body(g, 1, `{"seen":7}`) })
	}, "unreadable"},
	{"state with a member that nobody knows", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.State = body(g, 1, `{"seen":[],"unseen":1}`) })
	}, "unreadable"},
	{"covers the future", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.Seq += 2 })
	}, "off_path"},
	{"covers itself", func(g *garden.Garden) int64 {
		return bad(g, func(s *event.Snapshot) { s.Seq++ })
	}, "off_path"},
	{"body is gone", func(g *garden.Garden) int64 {
		seq := good(g)
		removeBlobs(g, seq)
		return seq
	}, "unreadable"},
	{"many parts, whose body is gone", func(g *garden.Garden) int64 {
		seq := g.Head("s").Seq + 1
		g.Snapshot("s", manyParts(100), true)
		removeBlobs(g, seq)
		return seq
	}, "unreadable"},
}

// padded is the number of messages that make a state a blob.
const padded = 200

// good appends a snapshot whose state is a blob.
func good(g *garden.Garden) int64 {
	g.T.Helper()
	g.Snapshot("s", garden.Traces[3], true)
	return g.Head("s").Seq
}

// bad appends a snapshot of the right states, changed by spoil.
func bad(g *garden.Garden, spoil func(s *event.Snapshot)) int64 {
	g.T.Helper()
	head := g.Head("s")
	s := event.Snapshot{Projection: "test:both", Version: 1, SnapshotID: "bad", Seq: head.Seq, Hash: head.Hash, State: body(g, 1, `{"seen":["no"]}`)}
	spoil(&s)
	return g.Append("s", event.New(s)).Seq
}

// body is a body in which both parts have a version and a state.
func body(g *garden.Garden, version int, state string) jsontext.Value {
	part := fmt.Sprintf(`{"version":%d,"state":%s}`, version, state)
	return jsontext.Value(fmt.Sprintf(`{"test:path":%s,"test:session":%s}`, part, part))
}

// removeBlobs removes the blobs of a snapshot.
func removeBlobs(g *garden.Garden, seq int64) {
	g.T.Helper()
	e, err := g.Log.Event(garden.Bg, "s", seq)
	g.Allow(err)
	if len(e.Blobs()) == 0 {
		g.T.Fatalf("snapshot %d needs no blob", seq)
	}
	blobs, _ := eventlog.As[eventlog.Blobs](g.Log.Store())
	for _, d := range e.Blobs() {
		g.Allow(blobs.RemoveBlobs(garden.Bg, []event.Digest{d}))
	}
}

func manyParts(n int) projection.Set {
	set := projection.Of("test:both", garden.PathTrace, garden.SessionTrace)
	for i := range n {
		set.Parts = append(set.Parts, garden.TraceOf(fmt.Sprint("test:part-", i), event.PathScope))
	}
	return set
}

// A load skips an unusable snapshot, reports it, and uses the snapshot before it.
func TestUnusableSnapshotsAreSkipped(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
				bulk(g, "s", padded)
				first := g.Snapshot("s", garden.Traces[3], true)
				bulk(g, "s", 2)
				seq := d.do(g)
				bulk(g, "s", 3)
				head := g.Head("s").Seq
				got, err := projection.LoadSet(garden.Bg, g.Log, "s", garden.Traces[3])
				g.Allow(err)
				want := g.Expected(head, g.Lineage("s"))
				path, _ := projection.State(got, garden.PathTrace)
				session, _ := projection.State(got, garden.SessionTrace)
				garden.Same(t, "path", want.Path, path.Seen)
				garden.Same(t, "session", want.Session, session.Seen)
				garden.Same(t, "skipped", []int64{seq}, dedupe(skipped(got.Explain, d.why)))
				for _, p := range got.Explain.Parts {
					if p.From.ID != first.SnapshotID {
						t.Errorf("%s begins from %+v", p.Projection, p.From)
					}
				}
				if read := head - first.Seq; got.Explain.Events != read {
					t.Errorf("read %d events, needed %d", got.Explain.Events, read)
				}
			})
		})
	}
}

func dedupe(seqs []int64) (list []int64) {
	for _, s := range seqs {
		if len(list) == 0 || list[len(list)-1] != s {
			list = append(list, s)
		}
	}
	return list
}

// altering changes bodies when they are read.
type altering struct {
	*counted
	alter func(body string) string
}

func (a *altering) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := a.counted.OpenBlob(ctx, d)
	if err != nil || a.alter == nil {
		return r, err
	}
	body, err := io.ReadAll(r)
	return struct {
		io.Reader
		io.Closer
	}{strings.NewReader(a.alter(string(body))), r}, err
}

func TestABodyWithChangedBytesIsSkipped(t *testing.T) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			store := &altering{counted: countReads(open(t.TempDir()))}
			log := eventlog.Open(store)
			defer func() { _ = log.Close() }()
			g := &garden.Garden{T: t, Log: log}
			bulk(g, "s", padded)
			seq := good(g)
			store.alter = func(body string) string { return " " + body }
			view, err := projection.Load(garden.Bg, log, "s", garden.PathTrace)
			g.Allow(err)
			garden.Same(t, "state", g.Expected(seq, g.Lineage("s")).Path, view.State.Seen)
			garden.Same(t, "skipped", []int64{seq}, skipped(view.Explain, "bad_digest"))
		})
	}
}

// Entries decodes a body while it reads it, and uses no part of a changed one.
func TestEntriesSkipAChangedBody(t *testing.T) {
	for name, alter := range map[string]func(body string) string{
		"other text":  func(body string) string { return strings.Replace(body, "message 7", "Message 7", 1) },
		"a cut body":  func(body string) string { return body[:len(body)/2] },
		"more text":   func(body string) string { return body + "{}" },
		"another seq": func(body string) string { return strings.Replace(body, `["m",8,`, `["m",9,`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			store := &altering{counted: countReads(memory.New())}
			log := eventlog.Open(store)
			defer func() { _ = log.Close() }()
			g := &garden.Garden{T: t, Log: log}
			bulk(g, "s", padded)
			want, err := newStory(t, log, "s").history().Messages()
			g.Allow(err)
			g.Snapshot("s", projection.Of("", projection.History()), true)
			store.alter = func(body string) string {
				if changed := alter(body); changed != body {
					return changed
				}
				t.Error("the body is the same")
				return body
			}
			got, err := collect(projection.EntriesOf(garden.Bg, log, "s", 0, 16, projection.RenderOptions{}))
			g.Allow(err)
			garden.Same(t, "entries", want, got)
		})
	}
}

// failing is a store whose bodies fail with an error when they are closed.
type failing struct {
	*counted
	atClose error
}

type failingBody struct {
	io.ReadCloser
	atClose error
}

func (f *failing) OpenBlob(ctx context.Context, d event.Digest) (io.ReadCloser, error) {
	r, err := f.counted.OpenBlob(ctx, d)
	return &failingBody{r, f.atClose}, err
}

func (b *failingBody) Close() error { return errors.Join(b.ReadCloser.Close(), b.atClose) }

// A load keeps no state of a body that fails after it was decoded.
func TestABodyThatFailsAtItsEndIsSkipped(t *testing.T) {
	store := &failing{counted: countReads(memory.New())}
	log := eventlog.Open(store)
	defer func() { _ = log.Close() }()
	g := &garden.Garden{T: t, Log: log}
	bulk(g, "s", padded)
	seq := good(g)
	store.atClose = io.ErrClosedPipe
	view, err := projection.Load(garden.Bg, log, "s", garden.PathTrace)
	g.Allow(err)
	garden.Same(t, "state", g.Expected(seq, g.Lineage("s")).Path, view.State.Seen)
	garden.Same(t, "skipped", []int64{seq}, skipped(view.Explain, "unreadable"))
}

// A load skips a snapshot that covers another path and uses the newest usable one,
// also if it read that snapshot earlier.
func TestASnapshotOffThePathIsSkipped(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 10)
		left := g.Head("s")
		g.Append("s", event.New(event.HeadMove{To: 4})) // 11
		bulk(g, "s", 5)
		g.Snapshot("s", garden.Traces[3], true) // 17
		bulk(g, "s", 2)
		off := bad(g, func(s *event.Snapshot) { s.Seq, s.Hash = left.Seq, left.Hash }) // 20
		bulk(g, "s", 1)
		got, err := projection.Load(garden.Bg, g.Log, "s", garden.PathTrace)
		g.Allow(err)
		garden.Same(t, "state", g.Expected(21, g.Lineage("s")).Path, got.State.Seen)
		garden.Same(t, "skipped", []int64{off}, skipped(got.Explain, "off_path"))
		if from := got.Explain.Parts[0].From.Seq; from != 17 {
			t.Errorf("begins from %d", from)
		}
	})
}

// A load does not use the snapshots of a copy: they describe the original.
func TestBodiesOfACopyAreNotUsed(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 5)
		seq := good(g)
		_, err := fork.Copy(garden.Bg, g.Log, "s", fork.CopyOptions{ID: "c"})
		g.Allow(err)
		got, err := projection.Load(garden.Bg, g.Log, "c", garden.PathTrace)
		g.Allow(err)
		garden.Same(t, "skipped", []int64{seq}, skipped(got.Explain, "copied"))
		if s := g.Snapshot("c", garden.Traces[3], true); s.Index != 1 || s.ParentSnapshotID == "" {
			t.Errorf("the copy's snapshot has index %d and parent %q", s.Index, s.ParentSnapshotID)
		}
		got, err = projection.Load(garden.Bg, g.Log, "c", garden.PathTrace)
		g.Allow(err)
		if got.Explain.Events != 1 || len(got.Explain.Skipped) != 0 {
			t.Errorf("read %d events, skipped %v", got.Explain.Events, got.Explain.Skipped)
		}
	})
}

// A closed log or a canceled context is an error, not a reason to skip a snapshot.
func TestAnInterruptedLoadIsAnError(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", padded)
		good(g)
		ctx, cancel := context.WithCancel(garden.Bg)
		cancel()
		if _, err := projection.Load(ctx, g.Log, "s", garden.PathTrace); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		if _, err := projection.Load(garden.Bg, g.Log, "none", garden.PathTrace); !errors.Is(err, eventlog.ErrNotFound) {
			t.Errorf("missing: %v", err)
		}
		for _, at := range []int64{-1, padded + 2} {
			if _, err := projection.Load(garden.Bg, g.Log, "s", garden.PathTrace, projection.Options{At: at}); !errors.Is(err, eventlog.ErrEventNotFound) {
				t.Errorf("at %d: %v", at, err)
			}
		}
		g.Allow(g.Log.Close())
		if _, err := projection.Load(garden.Bg, g.Log, "s", garden.PathTrace); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// A state that is no JSON, or cannot be encoded, is an error, and no event is
// written.
func TestAStateThatCannotBeEncodedIsRefused(t *testing.T) {
	broken := errors.New("broken")
	encoders := map[string]func(*int) (jsontext.Value, error){
		"nothing":    func(*int) (jsontext.Value, error) { return nil, nil },
		"no JSON":    func(*int) (jsontext.Value, error) { return jsontext.Value(`{"a":`), nil },
		"long":       func(*int) (jsontext.Value, error) { return jsontext.Value(strings.Repeat("x", 10_000)), nil },
		"two values": func(*int) (jsontext.Value, error) { return jsontext.Value(`1 2`), nil },
		"two names":  func(*int) (jsontext.Value, error) { return jsontext.Value(`{"a":1,"a":2}`), nil },
		"an error":   func(*int) (jsontext.Value, error) { return nil, broken },
	}
	for name, encode := range encoders {
		t.Run(name, func(t *testing.T) {
			onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
				bulk(g, "s", 2)
				before := g.Head("s")
				p := garden.Tally
				p.Encode, p.Digest = encode, func(*int) (event.Digest, error) { return "", nil }
				live, err := projection.Resume(garden.Bg, g.Log, "s", projection.Of("", p))
				g.Allow(err)
				_, taken, err := live.Snapshot(garden.Bg, projection.Request{Body: true})
				if taken || !errors.Is(err, projection.ErrInvalidState) && !errors.Is(err, broken) {
					t.Errorf("taken %v, %v", taken, err)
				}
				if head := g.Head("s"); head != before {
					t.Errorf("the head is %v, was %v", head, before)
				}
			})
		})
	}
}

func TestManyPartsMakeASmallEvent(t *testing.T) {
	onCounted(t, func(t *testing.T, g *garden.Garden, _ *counted) {
		bulk(g, "s", 20)
		set := manyParts(1000)
		g.Snapshot("s", set, true)
		e, err := g.Log.Event(garden.Bg, "s", 21)
		g.Allow(err)
		if len(e.Line()) > 4000 {
			t.Errorf("the snapshot's line has %d bytes", len(e.Line()))
		}
		l, err := projection.LoadSet(garden.Bg, g.Log, "s", set)
		g.Allow(err)
		if l.Explain.Events != 1 || len(l.Explain.Skipped) != 0 {
			t.Errorf("read %d events, skipped %v", l.Explain.Events, l.Explain.Skipped)
		}
		want, err := json.Marshal(garden.Trace{Seen: g.Expected(20, g.Lineage("s")).Path})
		g.Allow(err)
		for _, p := range set.Parts {
			got, err := projection.StateJSON(l, p.ProjectionName())
			g.Allow(err)
			garden.Same(t, p.ProjectionName(), strings.Contains(string(got), "20 "), strings.Contains(string(want), "20 "))
		}
	})
}

package projection_test

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// collect returns the entries before the first error.
func collect(entries iter.Seq2[projection.Entry, error]) ([]projection.Entry, error) {
	all := []projection.Entry{}
	for e, err := range entries {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

func TestEntriesAreTheMessagesOfALoad(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			for _, at := range []int64{0, rapid.Int64Range(1, l.Head(name).Seq).Draw(r, "at")} {
				o := projection.Options{At: at, Replay: rapid.Bool().Draw(r, "replay")}
				view, err := projection.Load(garden.Bg, l.Log, name, projection.History(), o)
				l.Allow(err)
				want, err := view.State.Messages()
				l.Allow(err)
				window := rapid.IntRange(1, 8).Draw(r, "window")
				got, err := collect(projection.EntriesOf(garden.Bg, l.Log, name, 0, window, projection.RenderOptions{}, o))
				l.Allow(err)
				garden.Same(r, fmt.Sprintf("%s at %d, in windows of %d", name, at, window), want, got)
			}
		}
	})
}

// onSpilled runs a test on a session of each store. The session has six messages; the data
// of the long ones is in blobs.
func onSpilled(t *testing.T, f func(t *testing.T, s *story, before []projection.Entry)) {
	for name, open := range garden.Stores(t) {
		t.Run(name, func(t *testing.T) {
			log := eventlog.Open(open(t.TempDir()), eventlog.Options{SpillOver: 200})
			t.Cleanup(func() { log.Close() })
			s := newStory(t, log, "s")
			long := strings.Repeat("long ", 100)
			s.add(asks("one"), asks("two"), inPlace(long+"three"), asks(long+"four"), says(event.Text("five"), calls("a")), gives("a", long+"six"))
			f(t, s, s.render())
		})
	}
}

// entries collects the entries of a history that holds no payloads, and calls after with the
// first one.
func (s *story) entries(window int, after func()) ([]projection.Entry, error) {
	return collect(func(yield func(projection.Entry, error) bool) {
		for e, err := range projection.EntriesOf(s.Context(), s.log, s.session, 0, window, projection.RenderOptions{}) {
			if !yield(e, err) {
				return
			}
			if after != nil {
				after()
				after = nil
			}
		}
	})
}

// A message that is redacted before Entries reads its payload comes without its content.
func TestEntriesOfMessagesThatAreRedactedMeanwhile(t *testing.T) {
	for _, read := range []int{1, 3, 4} {
		onSpilled(t, func(t *testing.T, s *story, before []projection.Entry) {
			got, err := s.entries(read, func() {
				if _, err := erase.Redact(s.Context(), s.log, "s", []int64{2, 3, 4, 5, 6}); err != nil {
					t.Fatal(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			after := s.render()
			garden.Same(t, "redacted text", "[redacted]", after[2].Message.Text())
			garden.Same(t, fmt.Sprintf("entries after a window of %d", read), slices.Concat(before[:read], after[read:]), got)
		})
	}
}

// Entries yields no message of another session that gets the same id.
func TestEntriesOfASessionThatIsRemovedMeanwhile(t *testing.T) {
	for name, then := range map[string]func(s *story){
		"no session":        func(*story) {},
		"a shorter session": func(s *story) { s.add(asks("one")) },
		"other text":        func(s *story) { s.add(asks("one"), asks("owt"), asks("x"), asks("x"), asks("x"), asks("x")) },
		"a redacted context": func(s *story) {
			s.add(asks("one"), inPlace("two"), inPlace("x"), asks("x"), asks("x"), asks("x"))
			if _, err := erase.Redact(s.Context(), s.log, "s", []int64{2}); err != nil {
				s.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onSpilled(t, func(t *testing.T, s *story, before []projection.Entry) {
				got, err := s.entries(1, func() {
					if err := erase.Remove(s.Context(), s.log, "s"); err != nil {
						t.Fatal(err)
					}
					then(s)
				})
				if !errors.Is(err, eventlog.ErrNotFound) {
					t.Errorf("the error is %v", err)
				}
				garden.Same(t, "entries", before[:1], got)
			})
		})
	}
}

// A load reads each event once. The rendering reads short blocks once and long blocks twice,
// also if its windows end inside of blocks.
func TestEntriesReadEachEventAFewTimes(t *testing.T) {
	const n, extra = 600, 30
	for name, x := range map[string]struct {
		event func(i int) event.Payload
		reads int64
	}{
		"one block": {func(i int) event.Payload { return asks(fmt.Sprint(i)) }, 3},
		"short blocks": {func(i int) event.Payload {
			if i%5 == 4 {
				return stepped
			}
			return asks(fmt.Sprint(i))
		}, 2},
		"rewinds": {func(i int) event.Payload {
			if i%5 == 4 {
				return event.HeadMove{To: int64(i - 1)}
			}
			return asks(fmt.Sprint(i))
		}, 3},
	} {
		onCounted(t, func(t *testing.T, g *garden.Garden, reads *counted) {
			var events []event.Event
			for i := range n {
				events = append(events, event.New(x.event(i)))
			}
			g.Append("s", events...)
			want, err := newStory(t, g.Log, "s").history().Messages()
			g.Allow(err)
			reads.reset()
			got, err := collect(projection.EntriesOf(garden.Bg, g.Log, "s", 0, 64, projection.RenderOptions{}))
			g.Allow(err)
			garden.Same(t, name, want, got)
			if reads.events > x.reads*n+extra {
				t.Errorf("%s: %d events read, want at most %d times %d", name, reads.events, x.reads, n)
			}
		})
	}
}

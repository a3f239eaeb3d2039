package projection_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/store/memory"
)

// The windows of a history follow each other as Messages has the messages.
func TestWindowsAreTheMessagesOfALoad(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			at := rapid.Int64Range(0, l.Head(name).Seq).Draw(r, "at")
			view, err := projection.Load(garden.Bg, l.Log, name, projection.History(), projection.Options{At: at})
			l.Allow(err)
			want, err := view.State.Messages()
			l.Allow(err)
			lean, err := projection.Load(garden.Bg, l.Log, name, projection.History(), projection.Options{At: at, Lean: true, Replay: rapid.Bool().Draw(r, "replay")})
			l.Allow(err)
			h := &lean.State
			if h.Len() != view.State.Len() {
				r.Fatalf("%d messages, want %d", h.Len(), view.State.Len())
			}
			a := rapid.IntRange(0, h.Len()).Draw(r, "a")
			b := rapid.IntRange(a, h.Len()).Draw(r, "b")
			got := []projection.Entry{}
			from := 0
			for _, to := range slices.Compact([]int{a, b, h.Len()}) {
				if to == 0 && h.Len() > 0 {
					continue
				}
				part, err := h.Window(garden.Bg, l.Log, name, from, to)
				l.Allow(err)
				got, from = append(got, part...), to
			}
			garden.Same(r, fmt.Sprintf("%s at %d, cut at %d and %d of %d", name, at, a, b, h.Len()), want, got)
			if _, err := h.Messages(); err == nil {
				r.Fatal("a lean history has messages")
			}
		}
	})
}

// kept is the size of the live heap that a value keeps.
func kept(f func() any) uint64 {
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	x := f()
	after := live()
	runtime.KeepAlive(x)
	return after - min(before, after)
}

// A window of a long history holds its own payloads only, and the history holds few bytes of each
// message.
func TestWindowOfALongHistory(t *testing.T) {
	log := eventlog.Open(memory.New())
	const pairs = 3000
	text := strings.Repeat("words ", 100)
	for i := range pairs {
		id := fmt.Sprint("c", i)
		var events []event.Event
		if i%1000 == 10 {
			events = append(events, event.New(event.ContextEntry{Kind: "memory", Placement: event.AsPrefix, Parts: []event.Part{event.Text(id)}}))
		}
		events = append(events, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "run", []byte(`{}`))}}),
			event.ToolOutput(id, "run", []byte(text+id), false))
		if i == 2 || i == 2500 {
			events = append(events, event.New(event.StepStart{}))
		}
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), events...); err != nil {
			t.Fatal(err)
		}
	}
	view, err := projection.Load(t.Context(), log, "s", projection.History())
	if err != nil {
		t.Fatal(err)
	}
	want, err := view.State.Messages()
	if err != nil {
		t.Fatal(err)
	}
	var lean projection.View[projection.HistoryState]
	held := kept(func() any {
		lean, err = projection.Load(t.Context(), log, "s", projection.History(), projection.Options{Lean: true})
		return &lean
	})
	if err != nil {
		t.Fatal(err)
	}
	n := lean.State.Len()
	if each := float64(held) / float64(n); each > 40 {
		t.Errorf("a lean history holds %.0f bytes of each message", each)
	}
	got := []projection.Entry{}
	for from := 0; from < n; from += 700 {
		part, err := lean.State.Window(t.Context(), log, "s", from, min(from+700, n))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part...)
	}
	garden.Same(t, "the windows", want, got)
}

package projection_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
)

// TestLawsOfHistory draws random sessions, unchecked as from an import, and checks
// the laws on every state.
func TestLawsOfHistory(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			g := &plot{T: rt, log: log, session: fmt.Sprintf("s%d", n), parents: []int64{0}, types: []event.Type{""}}
			for range rapid.IntRange(1, 4).Draw(rt, "scenes") {
				g.scene()
			}
			g.laws()
		})
	})
}

// plot makes a random session and keeps its tree.
type plot struct {
	*rapid.T
	log     *eventlog.Log
	session string
	parents []int64      // by seq
	types   []event.Type // by seq
}

// scene appends a few events at once and, perhaps, a snapshot.
func (g *plot) scene() {
	ctx := context.Background()
	var events []event.Event
	for range rapid.IntRange(1, 10).Draw(g.T, "events") {
		seq := int64(len(g.types))
		p := g.payload(seq)
		e := event.New(p)
		parent := seq - 1
		if m, moves := p.(event.HeadMove); moves {
			parent = m.To
		}
		g.parents, g.types = append(g.parents, parent), append(g.types, e.Type)
		events = append(events, e)
	}
	if _, err := g.log.Append(ctx, g.session, eventlog.Any().Lenient(), events...); err != nil {
		g.Fatal(err)
	}
	if !rapid.Bool().Draw(g.T, "snapshot") {
		return
	}
	live, err := projection.Resume(ctx, g.log, g.session, projection.Of("test:talk", projection.History(), projection.Transcript()))
	if err != nil {
		g.Fatal(err)
	}
	if _, _, err := live.Snapshot(ctx, projection.Request{Trigger: projection.Manual, Body: true}); err != nil {
		g.Fatal(err)
	}
	g.parents, g.types = append(g.parents, int64(len(g.types))-1), append(g.types, event.ProjectionSnapshotted)
}

func (g *plot) text() string {
	return rapid.SampledFrom([]string{"x", "yes", "über", "{}"}).Draw(g.T, "text")
}

func (g *plot) id() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(g.T, "id") }

func (g *plot) parts() (parts []event.Part) {
	for range rapid.IntRange(0, 3).Draw(g.T, "parts") {
		switch rapid.IntRange(0, 4).Draw(g.T, "part") {
		case 0:
			parts = append(parts, event.Text(g.text()))
		case 1:
			parts = append(parts, event.Reasoning(g.text(), "signed"))
		case 2, 3:
			parts = append(parts, calls(g.id()))
		default:
			parts = append(parts, event.ToolResult(g.id(), "", event.Text(g.text())))
		}
	}
	return parts
}

func (g *plot) message() event.Message {
	m := event.Message{Role: rapid.SampledFrom([]event.Role{"user", "assistant", "assistant", "tool", "system"}).Draw(g.T, "role"),
		Group: rapid.SampledFrom([]string{"", "", "g", "h"}).Draw(g.T, "group"), Parts: g.parts()}
	if m.Role == event.Assistant {
		m.Provider = rapid.SampledFrom([]string{"one", "two"}).Draw(g.T, "provider")
	}
	return m
}

func (g *plot) payload(seq int64) event.Payload {
	switch rapid.IntRange(0, 15).Draw(g.T, "kind") {
	case 0:
		return asks(g.text())
	case 1, 2:
		return says(event.Text(g.text()), calls(g.id()))
	case 3, 4:
		return gives(g.id(), g.text())
	case 5, 6, 7:
		return g.message()
	case 8:
		return prefix(g.text())
	case 9:
		return inPlace(g.text())
	case 10, 11:
		return stepped
	case 12:
		return event.ToolCompletion{CallID: g.id(), Name: "tool", Content: []event.Part{event.Text("ran " + g.text())}}
	case 13:
		return event.StepCompletion{Step: 1, Usage: event.Usage{InputTokens: 5}}
	case 14:
		return g.compaction(seq)
	default:
		return event.HeadMove{To: int64(rapid.IntRange(0, int(seq)-1).Draw(g.T, "to"))}
	}
}

func (g *plot) compaction(seq int64) (c event.Compaction) {
	c.Replace = rapid.IntRange(0, 5).Draw(g.T, "replace") == 0
	if rapid.Bool().Draw(g.T, "covers") {
		c.Covers.From = int64(rapid.IntRange(1, int(seq)).Draw(g.T, "from"))
		c.Covers.To = int64(rapid.IntRange(int(c.Covers.From), int(seq)).Draw(g.T, "to"))
	}
	for range rapid.IntRange(0, 3).Draw(g.T, "entries") {
		entry := event.CompactionEntry{Seq: int64(rapid.IntRange(0, int(seq)).Draw(g.T, "ref"))}
		if entry.Seq == 0 {
			m := g.message()
			entry.Message = &m
		}
		c.Entries = append(c.Entries, entry)
	}
	c.Cleared = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(g.T, "cleared")
	c.Summary = rapid.SampledFrom([]string{"", "what happened"}).Draw(g.T, "summary")
	c.ModifiedFiles = rapid.SampledFrom([][]string{nil, {"m.go"}}).Draw(g.T, "files")
	return c
}

// seen is a state and its rendering.
type seen struct {
	lines   []string
	digest  event.Digest
	encoded string
}

func (g *plot) at(seq int64, replay bool, o projection.RenderOptions) (s seen, entries []projection.Entry) {
	l, err := projection.LoadSet(context.Background(), g.log, g.session, projection.Of("", projection.History()), projection.Options{At: seq, Replay: replay})
	if err != nil {
		g.Fatal(err)
	}
	h, _ := projection.State(l, projection.History())
	if entries, err = h.Messages(o); err != nil {
		g.Fatal(err)
	}
	g.streams(h, entries, o)
	encoded, err := projection.History().Encode(h)
	if err != nil {
		g.Fatal(err)
	}
	if s.digest, err = l.Digest(); err != nil {
		g.Fatal(err)
	}
	s.encoded, s.lines = string(encoded), messageJSON(g.T, entries)
	return s, entries
}

// reads checks that Entries gives entries, also if it holds few payloads and reads few at a
// time.
func (g *plot) reads(entries []projection.Entry, o projection.RenderOptions, options projection.Options) {
	bytes, window := rapid.SampledFrom([]int{0, 100, 1000}).Draw(g.T, "held"), rapid.SampledFrom([]int{1, 2, 5, 8}).Draw(g.T, "window")
	all, err := collect(projection.EntriesOf(context.Background(), g.log, g.session, bytes, window, o, options))
	if err != nil {
		g.Fatal(err)
	}
	if diff := difference(entries, all); diff != "" {
		g.Fatalf("entries that hold %d bytes, in windows of %d:\n%s", bytes, window, diff)
	}
}

// difference describes how two lists of entries differ. It compares them the fast way first.
func difference(want, got []projection.Entry) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty())
}

// streams checks that Entries and Messages give entries, also when they decode few items at
// a time.
func (g *plot) streams(h *projection.HistoryState, entries []projection.Entry, o projection.RenderOptions) {
	for _, window := range []int{1, 2, 5} {
		all, err := collect(projection.EntriesInWindows(h, window, o))
		if err != nil {
			g.Fatal(err)
		}
		if diff := difference(entries, all); diff != "" {
			g.Fatalf("entries in windows of %d:\n%s", window, diff)
		}
		all, err = projection.MessagesInWindows(h, window, o)
		if err != nil {
			g.Fatal(err)
		}
		if diff := difference(entries, all); diff != "" {
			g.Fatalf("messages in windows of %d:\n%s", window, diff)
		}
	}
}

func (g *plot) laws() {
	o := projection.RenderOptions{Provider: rapid.SampledFrom([]string{"", "one"}).Draw(g.T, "for"), DemoteSystem: rapid.Bool().Draw(g.T, "demote")}
	frozen := make([][]string, len(g.types))
	states := make([]seen, len(g.types))
	for seq := int64(1); seq < int64(len(g.types)); seq++ {
		from := g.parents[seq]
		replayed, entries := g.at(seq, true, o)
		states[seq] = replayed
		if err := paired(entries); err != nil {
			g.Fatalf("at %d: %v\n%s", seq, err, brief(entries))
		}
		resumed, _ := g.at(seq, false, o)
		if diff := cmp.Diff(replayed, resumed, cmp.AllowUnexported(seen{})); diff != "" {
			g.Fatalf("at %d: replayed, and from a snapshot:\n%s", seq, diff)
		}
		g.foldsOn(seq, replayed)
		g.reads(entries, o, projection.Options{At: seq, Replay: rapid.Bool().Draw(g.T, "replay")})
		switch g.types[seq] {
		case event.CompactionTriggered:
		case event.StepStarted:
			if frozen[seq] = replayed.lines; !slices.Equal(replayed.lines, states[from].lines) {
				g.Fatalf("step %d changes the history", seq)
			}
		case event.ProjectionSnapshotted:
			if replayed.digest != states[from].digest || replayed.encoded != states[from].encoded {
				g.Fatalf("snapshot %d changes the history", seq)
			}
			fallthrough
		default:
			frozen[seq] = frozen[from]
		}
		if !isPrefix(frozen[seq], replayed.lines) {
			g.Fatalf("at %d: what was frozen changed:\n%s", seq, cmp.Diff(frozen[seq], replayed.lines))
		}
	}
}

// foldsOn decodes the state before seq from its encoding and folds the event.
func (g *plot) foldsOn(seq int64, want seen) {
	if g.parents[seq] == 0 {
		return
	}
	before, _ := g.at(g.parents[seq], true, projection.RenderOptions{})
	h, err := projection.History().Decode([]byte(before.encoded))
	if err != nil {
		g.Fatal(err)
	}
	e, err := g.log.Event(context.Background(), g.session, seq)
	if err == nil {
		err = projection.History().Apply(&h, &e)
	}
	if err != nil {
		g.Fatal(err)
	}
	got, err := projection.History().Encode(&h)
	if err != nil {
		g.Fatal(err)
	}
	if diff := cmp.Diff(want.encoded, string(got)); diff != "" {
		g.Fatalf("at %d: replayed, and from an encoding of the state before:\n%s", seq, diff)
	}
}

func isPrefix(of, lines []string) bool {
	return len(of) <= len(lines) && slices.Equal(of, lines[:len(of)])
}

// paired reports calls that are not followed by their results, and results
// without a call.
func paired(entries []projection.Entry) error {
	for i := 0; i < len(entries); i++ {
		m := entries[i].Message
		calls := m.ToolCalls()
		switch {
		case len(m.Parts) == 0:
			return fmt.Errorf("entry %d says nothing", i)
		case len(m.ToolResults()) > 0 || m.Role == event.Tool:
			return fmt.Errorf("entry %d is a result without a call", i)
		case len(calls) > 0 && m.Role != event.Assistant:
			return fmt.Errorf("entry %d: %s calls", i, m.Role)
		}
		seen := map[string]bool{}
		for _, c := range calls {
			if i++; i == len(entries) {
				return errors.New("the last call has no result")
			}
			r := entries[i].Message
			if r.Role != event.Tool || len(r.Parts) != 1 || r.Parts[0].CallID != c.CallID || seen[c.CallID] {
				return fmt.Errorf("entry %d is not the result of %s", i, c.CallID)
			}
			seen[c.CallID] = true
		}
	}
	return nil
}

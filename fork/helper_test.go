package fork_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
	"github.com/convlog/convlog/upkeep/verify"
)

// stores are the stores that every test runs over.
var stores = map[string]func(dir string) eventlog.Store{
	"jsonl": func(dir string) eventlog.Store { return jsonl.New(dir, jsonl.Options{NoSync: true}) },
	"sqlite": func(dir string) eventlog.Store {
		return sqlite.New(filepath.Join(dir, "s.db"), sqlite.Options{NoSync: true})
	},
}

// bench is a log under test.
type bench struct {
	testing.TB
	ctx context.Context
	log *eventlog.Log
	// store counts the events that are read.
	store *counting
}

// everywhere runs a test over each store.
func everywhere(t *testing.T, test func(t *bench)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) { test(newBench(t, open)) })
	}
}

func newBench(t testing.TB, open func(dir string) eventlog.Store) *bench {
	b := &bench{TB: t, ctx: context.Background(), store: &counting{Store: open(t.TempDir())}}
	b.log = eventlog.Open(b.store)
	t.Cleanup(func() {
		if err := b.log.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// counting counts the reads of a store, and the events they yield.
type counting struct {
	eventlog.Store
	reads, events atomic.Int64
}

func (c *counting) Unwrap() eventlog.Store { return c.Store }

func (c *counting) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	c.reads.Add(1)
	return func(yield func(event.Event, error) bool) {
		for e, err := range c.Store.Read(ctx, session, r) {
			c.events.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// count is how many reads fn makes, and how many events those yield.
func (c *counting) count(fn func()) (reads, events int64) {
	c.reads.Store(0)
	c.events.Store(0)
	fn()
	return c.reads.Load(), c.events.Load()
}

func (t *bench) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// add appends events as one append, and returns the seq of the last.
func (t *bench) add(session string, events ...event.Event) int64 {
	t.Helper()
	head, err := t.log.Append(t.ctx, session, eventlog.Any(), events...)
	t.must(err)
	return head.Seq
}

// each appends events one by one.
func (t *bench) each(session string, events ...event.Event) (seq int64) {
	t.Helper()
	for _, e := range events {
		seq = t.add(session, e)
	}
	return seq
}

func user(text string) event.Event      { return event.UserMessage(text) }
func assistant(text string) event.Event { return event.AssistantMessage(text) }
func moved(to int64) event.Event        { return event.New(event.HeadMove{To: to}) }
func result(call string) event.Event {
	return event.ToolOutput(call, "look", []byte("found"), false)
}

func calls(ids ...string) event.Event {
	m := event.Message{Role: event.Assistant}
	for _, id := range ids {
		m.Parts = append(m.Parts, event.Part{Type: event.ToolCallPart, CallID: id, Name: "look", Arguments: []byte(`{}`)})
	}
	return event.New(m)
}

func started(index int) event.Event {
	return event.New(event.TurnStart{Index: index})
}

func completed(start event.Event) event.Event {
	return event.New(event.TurnCompletion{TurnID: start.ID, Status: event.TurnStatusCompleted})
}

// turns appends n whole turns of six events in four appends: input and start, a
// call, its result, an answer with the end.
func (t *bench) turns(session string, first, n int) (head int64) {
	t.Helper()
	for i := first; i < first+n; i++ {
		start, call := started(i), fmt.Sprintf("c%d", i)
		t.add(session, user(fmt.Sprintf("question %d", i)), start)
		t.each(session, calls(call), result(call))
		head = t.add(session, assistant("done"), completed(start))
	}
	return head
}

// path are the seqs of the active path.
func (t *bench) path(session string) (seqs []int64) {
	t.Helper()
	for e, err := range t.log.Read(t.ctx, session, eventlog.All().OnPath()) {
		t.must(err)
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// lineage is the ancestors of a session, each checked.
func lineage(ctx context.Context, log *eventlog.Log, session string) (line []eventlog.Ancestor, err error) {
	for a, err := range log.Ancestors(ctx, session) {
		if err == nil {
			err = log.CheckAncestor(ctx, a)
		}
		if err != nil {
			return nil, err
		}
		line = append(line, a)
	}
	return line, nil
}

// node is a session's node of the forest.
func (t *bench) node(session string) *fork.Node {
	t.Helper()
	forest, err := fork.Tree(t.ctx, t.log)
	t.must(err)
	n := forest.Node(session)
	if n == nil {
		t.Fatalf("the forest has no session %q", session)
	}
	return n
}

func idsOf(nodes []*fork.Node) (ids []string) {
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// sound verifies a session.
func (t *bench) sound(session string) {
	t.Helper()
	report, err := verify.Session(t.ctx, t.log, session)
	t.must(err)
	for _, d := range report.Defects {
		t.Errorf("verify %q: %v", session, d)
	}
}

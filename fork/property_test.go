package fork_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/upkeep/erase"
)

// model is the expected state of the sessions of a random history: for each session,
// the texts of the path that ends with each event.
type model struct {
	*bench
	r     *rapid.T
	names []string
	paths map[string][][]string // of a session, at each seq from 0
	said  int
}

func (m *model) pick() string { return rapid.SampledFrom(m.names).Draw(m.r, "session") }

// tip is the path at the head.
func (m *model) tip(session string) []string {
	paths := m.paths[session]
	return paths[len(paths)-1]
}

func (m *model) grow(session string, path []string) {
	m.paths[session] = append(m.paths[session], path)
}

// say appends one to three messages as one append.
func (m *model) say() {
	session := m.pick()
	var events []event.Event
	for range rapid.IntRange(1, 3).Draw(m.r, "messages") {
		m.said++
		text := fmt.Sprint(session, " ", m.said)
		events = append(events, assistant(text))
		m.grow(session, append(slices.Clip(m.tip(session)), text))
	}
	m.add(session, events...)
}

// at draws a seq of a session that ends an append.
func (m *model) at(session string) (seq int64) {
	for {
		seq = int64(rapid.IntRange(0, len(m.paths[session])-1).Draw(m.r, "seq"))
		e, err := fork.Resolve(m.ctx, m.log, session, fork.AtSeq(seq))
		m.must(err)
		if e.More() == 0 {
			return seq
		}
	}
}

func (m *model) fork() {
	parent, name := m.pick(), fmt.Sprint("s", len(m.names))
	seq := m.at(parent)
	m.bench.fork(name, parent, fork.AtSeq(seq))
	m.names = append(m.names, name)
	m.paths[name] = slices.Clip(m.paths[parent][:seq+1])
	m.grow(name, m.tip(name))
}

func (m *model) rewind() {
	session := m.pick()
	seq := m.at(session)
	_, err := fork.Rewind(m.ctx, m.log, session, fork.AtSeq(seq))
	if errors.Is(err, fork.Error("no_move")) {
		if diff := cmp.Diff(m.tip(session), m.paths[session][seq]); diff != "" {
			m.r.Errorf("a rewind of %q to %d changes something:\n%s", session, seq, diff)
		}
		return
	}
	m.must(err)
	m.grow(session, m.paths[session][seq])
}

// rewindAndRecover rewinds and recovers: the path is the same as before.
func (m *model) rewindAndRecover() {
	session := m.pick()
	seq := m.at(session)
	before := m.tip(session)
	_, err := fork.Rewind(m.ctx, m.log, session, fork.AtSeq(seq))
	if errors.Is(err, fork.Error("no_move")) {
		return
	}
	m.must(err)
	m.grow(session, m.paths[session][seq])
	_, err = fork.Recover(m.ctx, m.log, session)
	left := len(before) > len(m.tip(session)) || !slices.Equal(before, m.tip(session)[:len(before)])
	if !left && errors.Is(err, fork.Error("nothing_orphaned")) {
		return // it went on to what had been left before
	}
	m.must(err)
	if left {
		m.grow(session, before)
		return
	}
	m.grow(session, m.texts(session))
}

func (m *model) copy() {
	source, name := m.pick(), fmt.Sprint("s", len(m.names))
	_, err := fork.Copy(m.ctx, m.log, source, fork.CopyOptions{ID: name})
	m.must(err)
	m.names = append(m.names, name)
	m.paths[name] = slices.Clone(m.paths[source])
}

// texts are the messages of the active path.
func (m *model) texts(session string) (texts []string) {
	for e, err := range m.log.Read(m.ctx, session, eventlog.All().OnPath()) {
		m.must(err)
		if msg, ok, err := event.Decode[event.Message](&e); ok {
			m.must(err)
			texts = append(texts, msg.Parts[0].Text)
		}
	}
	return texts
}

// compare compares every session with the model, at every seq of one.
func (m *model) compare() {
	for _, session := range m.names {
		if got, want := m.texts(session), m.tip(session); !slices.Equal(got, want) {
			m.r.Fatalf("%q tells %q, want %q", session, got, want)
		}
	}
	session, none := m.pick(), fmt.Sprint("none of ", len(m.names))
	m.bench.fork(none, session, fork.AtSeq(0))
	for seq, want := range m.paths[session][1:] {
		seq++
		d, err := fork.Diff(m.ctx, m.log, fork.Tip{Session: session, Seq: int64(seq)}, fork.Tip{Session: none})
		m.must(err)
		var got []string
		for e, err := range d.A.Events(m.ctx) {
			m.must(err)
			if msg, ok, _ := event.Decode[event.Message](&e); ok {
				got = append(got, msg.Parts[0].Text)
			}
		}
		if !slices.Equal(got, want) {
			m.r.Fatalf("%q told %q at %d, want %q", session, got, seq, want)
		}
	}
}

// differ compares a difference with the two paths.
func (m *model) differ() {
	a, b := m.pick(), m.pick()
	d, err := fork.Diff(m.ctx, m.log, fork.Tip{Session: a}, fork.Tip{Session: b})
	if errors.Is(err, fork.Error("unrelated")) {
		return
	}
	m.must(err)
	for i, side := range []*fork.Side{&d.A, &d.B} {
		tip := m.tip([]string{a, b}[i])
		for e, err := range side.Events(m.ctx) {
			m.must(err)
			if _, ok, _ := event.Decode[event.Message](&e); ok {
				tip = tip[:len(tip)-1]
			}
		}
		other := m.tip([]string{b, a}[i])
		if len(tip) > len(other) || !slices.Equal(tip, other[:len(tip)]) {
			m.r.Fatalf("%q and %q have %q in common: %q and %q", a, b, tip, m.tip(a), m.tip(b))
		}
	}
}

// After forks, rewinds, recoveries and copies in any order, each path is the expected
// one, no session has the messages of an unrelated one, and every session verifies.
func TestRandomTrees(t *testing.T) {
	everywhere(t, func(b *bench) {
		round := 0
		rapid.Check(b.TB.(*testing.T), func(r *rapid.T) {
			round++
			root := fmt.Sprint("root ", round)
			m := &model{bench: b, r: r, names: []string{root}, paths: map[string][][]string{root: {nil}}}
			m.grow(root, []string{"begin"})
			b.add(root, assistant("begin"))
			steps := []func(){m.say, m.say, m.say, m.fork, m.rewind, m.rewind, m.rewindAndRecover, m.copy, m.differ}
			for range rapid.IntRange(1, 25).Draw(r, "steps") {
				rapid.SampledFrom(steps).Draw(r, "step")()
			}
			m.compare()
			for _, session := range m.names {
				b.sound(session)
			}
			m.names = append(m.names, fmt.Sprint("none of ", len(m.names)))
			for _, session := range slices.Backward(m.names) {
				if err := erase.Remove(b.ctx, b.log, session); err != nil && !errors.Is(err, eventlog.ErrInUse) {
					r.Fatal(err)
				}
			}
		})
	})
}

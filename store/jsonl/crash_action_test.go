package jsonl_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/transfer"
)

// action is an operation of a user. It is retried if its outcome is unknown.
type action struct {
	what    string
	groups  []group // the appends it makes
	secrets map[ulid.ULID]string
	erases  bool   // it redacts an event
	removes string // the session it removes
	durable bool   // it asks for durability
	atomic  bool   // it is one append, or several that are written together
	run     func(ctx context.Context, log *eventlog.Log) error
}

// spillOver is small, so that many bodies become blobs.
const spillOver = 1500

// author creates random actions that fit the model.
type author struct {
	*rand.Rand
	model *model
	made  int
	// appendsOnly authors only append, with eventlog.Any: concurrent actions cannot
	// make them fail.
	appendsOnly bool
	shortTexts  bool // all texts are short
	relaxed     bool // some appends ask for durability
	stream      stream
}

// stream is an export to import.
type stream struct {
	bytes   []byte
	groups  []group
	secrets map[ulid.ULID]string
}

func (w *author) next() *action {
	session := []string{"a", "B", "c"}[w.IntN(3)]
	for {
		var a *action
		switch n := w.IntN(40); {
		case n < 14:
			a = w.append(session, w.messages(1))
		case n < 18:
			a = w.append(session, w.messages(2+w.IntN(4)))
		case n < 22:
			a = w.append(session, w.messages(1), w.messages(1+w.IntN(3)), w.messages(1))
		case n < 25:
			a = w.artifact(session)
		case w.appendsOnly:
			a = w.append(session, w.messages(1))
		case n < 27:
			a = w.imports()
		case n < 29:
			a = w.snapshot(session)
		case n < 32:
			w.made++
			a = w.fork(session, fmt.Sprintf("fork-%d", w.made))
		case n < 37:
			a = w.redact(session)
		default:
			a = w.remove(session)
		}
		if a != nil {
			return a
		}
	}
}

// secret returns a unique text, and the text repeated up to a size.
func (w *author) secret(size int) (secret, text string) {
	w.made++
	secret = fmt.Sprintf("secret-%d-%d.", w.made, w.Uint32())
	return secret, strings.Repeat(secret, size/len(secret)+1)
}

func (w *author) size() int {
	switch n := w.IntN(8); {
	case w.shortTexts || n > 2:
		return w.IntN(200)
	case n == 0:
		return spillOver + w.IntN(2000)
	}
	return 300 + w.IntN(1000)
}

// textEvent is an event and the unique text in it.
type textEvent struct {
	event.Event
	secret string
}

func (w *author) messages(n int) (events []textEvent) {
	for range n {
		secret, text := w.secret(w.size())
		events = append(events, textEvent{event.UserMessage(text), secret})
	}
	return events
}

// must panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (w *author) append(session string, appends ...[]textEvent) *action {
	return w.appendAt(w.expectation(session), session, appends...)
}

// appendAt appends with an expectation.
func (w *author) appendAt(expect eventlog.Expect, session string, appends ...[]textEvent) *action {
	a := &action{what: fmt.Sprintf("%d appends to %s", len(appends), session), atomic: true, secrets: map[ulid.ULID]string{}}
	if w.relaxed && w.IntN(4) == 0 {
		expect, a.durable = expect.Durable(), true
	}
	var each [][]event.Event
	for _, one := range appends {
		g := group{session: session}
		var events []event.Event
		for _, e := range one {
			g.ids, events = append(g.ids, e.ID), append(events, e.Event)
			a.secrets[e.ID] = e.secret
		}
		a.groups, each = append(a.groups, g), append(each, events)
	}
	a.run = func(ctx context.Context, log *eventlog.Log) error {
		if len(each) == 1 {
			_, err := log.Append(ctx, session, expect, each[0]...)
			return err
		}
		_, err := log.AppendEach(ctx, session, expect, each...)
		if errors.Is(err, eventlog.ErrConflict) {
			return appendRest(ctx, log, session, a.durable, each)
		}
		return err
	}
	return a
}

// appendRest retries several appends. Some are stored already; it appends the others.
func appendRest(ctx context.Context, log *eventlog.Log, session string, durable bool, each [][]event.Event) error {
	expect := eventlog.Any()
	if durable {
		expect = expect.Durable()
	}
	events, err := readOwn(ctx, log, session)
	if err != nil {
		return err
	}
	there := func(one []event.Event) bool {
		return slices.ContainsFunc(events, func(e event.Event) bool { return e.ID == one[0].ID })
	}
	if !there(each[0]) {
		return fmt.Errorf("session %q has another head than expected: %w", session, eventlog.ErrConflict)
	}
	for _, one := range each {
		if there(one) {
			continue
		}
		if _, err := log.Append(ctx, session, expect, one...); err != nil {
			return err
		}
	}
	return nil
}

// expectation returns a random expectation that holds now.
func (w *author) expectation(session string) eventlog.Expect {
	head := w.model.head(session)
	switch {
	case w.appendsOnly || w.IntN(3) == 0:
		return eventlog.Any()
	case w.IntN(2) == 0 && !head.IsZero():
		return eventlog.Any().After(head)
	}
	return eventlog.At(head)
}

// head returns the last acknowledged event of a session.
func (m *model) head(session string) (head event.Head) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.groups {
		if last := g.first + int64(len(g.ids)) - 1; g.session == session && g.acknowledged && last > head.Seq {
			e := must(event.Parse(g.lines[len(g.lines)-1], session))
			head = e.Head()
		}
	}
	return head
}

func (w *author) artifact(session string) *action {
	secret, body := w.secret(w.IntN(3000))
	ref := event.BlobRef{Blob: event.DigestOf([]byte(body)), Bytes: int64(len(body))}
	e := event.New(event.Artifact{ArtifactID: "artifact", Body: ref})
	a := w.append(session, []textEvent{{e, secret}})
	appending := a.run
	a.what = "an artifact of " + session
	a.run = func(ctx context.Context, log *eventlog.Log) error {
		if _, err := log.PutBlob(ctx, strings.NewReader(body)); err != nil {
			return err
		}
		return appending(ctx, log)
	}
	return a
}

func (w *author) snapshot(session string) *action {
	head := w.model.head(session)
	if head.IsZero() {
		return nil
	}
	secret, text := w.secret(w.size())
	state := fmt.Appendf(nil, "{%q:%q}", "state", text)
	e := event.New(event.Snapshot{Projection: "state", Version: 1, Seq: head.Seq, State: state})
	// A snapshot is of the events before it: after a loss of these, it is not appended.
	a := w.appendAt(eventlog.At(head), session, []textEvent{{e, secret}})
	a.what = "a snapshot of " + session
	return a
}

func (w *author) fork(session, child string) *action {
	head := w.model.head(session)
	if head.IsZero() || len(w.model.sessions()) > 8 {
		return nil
	}
	line := w.model.lineAt(session, head.Seq)
	e := event.New(event.Fork{Parent: session, Seq: head.Seq, EventID: line.ID, Hash: line.Hash()})
	first := append([]textEvent{{e, ""}}, w.messages(w.IntN(2))...)
	a := w.append(child, first)
	a.what = "a fork of " + session
	a.groups[0].parent = session
	return a
}

func (m *model) lineAt(session string, seq int64) event.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.groups {
		if at := seq - g.first; g.session == session && g.acknowledged && at >= 0 && at < int64(len(g.lines)) {
			return must(event.Parse(g.lines[at], session))
		}
	}
	panic("no such event")
}

func (w *author) redact(session string) *action {
	var seqs []int64
	for _, g := range w.model.groups {
		for i := range g.lines {
			e := must(event.Parse(g.lines[i], g.session))
			if g.session == session && g.acknowledged && !e.Redacted() && e.Type == event.MessageAdded {
				seqs = append(seqs, e.Seq)
			}
		}
	}
	if len(seqs) == 0 {
		return nil
	}
	slices.Sort(seqs)
	seq := seqs[w.IntN(len(seqs))]
	return &action{what: fmt.Sprintf("redaction of %s %d", session, seq), erases: true, durable: true,
		run: func(ctx context.Context, log *eventlog.Log) error {
			_, err := erase.Redact(ctx, log, session, []int64{seq}, erase.RedactOptions{Reason: ""})
			return err
		}}
}

func (w *author) remove(session string) *action {
	parents := map[string]bool{}
	for _, g := range w.model.groups {
		parents[g.parent] = true
	}
	if parents[session] || w.model.head(session).IsZero() {
		return nil
	}
	return &action{what: "removal of " + session, removes: session, durable: true,
		run: func(ctx context.Context, log *eventlog.Log) error {
			err := erase.Remove(ctx, log, session)
			if errors.Is(err, eventlog.ErrNotFound) {
				return nil
			}
			return err
		}}
}

// imports imports the stream. Some of its events may be stored already.
func (w *author) imports() *action {
	if w.stream.bytes == nil {
		return nil
	}
	return &action{what: "an import", groups: w.stream.groups, secrets: w.stream.secrets,
		run: func(ctx context.Context, log *eventlog.Log) error {
			_, err := transfer.Import(ctx, log, bytes.NewReader(w.stream.bytes))
			return err
		}}
}

// makeStream exports two sessions from another store. One is a fork of the other.
func makeStream(ctx context.Context, r *rand.Rand, log *eventlog.Log) stream {
	w := &author{Rand: r, model: newModel()}
	for _, make := range []func() *action{
		func() *action { return w.append("imported", w.messages(1), w.messages(3), w.messages(1)) },
		func() *action { return w.artifact("imported") },
		func() *action { return w.fork("imported", "imported-fork") },
		func() *action { return w.append("imported-fork", w.messages(2)) },
	} {
		a := make()
		w.model.begin(a)
		mustDo(a.run(ctx, log))
		mustDo(w.model.finish(ctx, log, a, true))
	}
	var b bytes.Buffer
	mustDo(transfer.Export(ctx, log, &b, "imported-fork"))
	s := stream{bytes: b.Bytes(), secrets: w.model.secrets}
	for _, g := range w.model.groups {
		s.groups = append(s.groups, group{session: g.session, ids: g.ids, parent: g.parent})
	}
	return s
}

func mustDo(err error) {
	if err != nil {
		panic(err)
	}
}

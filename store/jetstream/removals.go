package jetstream

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// removalsSubject has the marks of removed sessions, in the control stream.
const removalsSubject = "removals"

// marksInMessage bounds the marks of one message of PutRemovals.
const marksInMessage = 5000

// PutRemovals implements eventlog.RemovalKeeper.
func (s *Store) PutRemovals(ctx context.Context, marks []string) error {
	l, err := s.writable(ctx)
	if err == nil {
		err = l.putRemovals(ctx, marks)
	}
	return wrap("mark removed sessions", err)
}

func (l *layout) putRemovals(ctx context.Context, marks []string) error {
	st := l.control
	stored, err := l.removals(ctx)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, mark := range stored {
		has[mark] = true
	}
	marks = slices.DeleteFunc(slices.Clone(marks), func(mark string) bool { return has[mark] })
	for page := range slices.Chunk(marks, marksInMessage) {
		var batch []*nats.Msg
		if at, fenced := st.fenceOf(ctx); fenced {
			batch = append(batch, st.fenceGuard(at))
		}
		body := strings.Join(page, "\n") + "\n"
		batch = append(batch, &nats.Msg{Subject: st.subject(removalsSubject), Header: nats.Header{}, Data: []byte(body)})
		if _, err := st.publishAll(ctx, batch); err != nil {
			return st.erasingFailure(ctx, err)
		}
	}
	return nil
}

// Removals implements eventlog.RemovalKeeper.
func (s *Store) Removals(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var marks []string
		l, err := s.reading(ctx)
		if l != nil && err == nil {
			marks, err = l.removals(ctx)
		}
		if err != nil {
			yield("", wrap("read the marks of removed sessions", err))
			return
		}
		for _, mark := range marks {
			if !yield(mark, nil) {
				return
			}
		}
	}
}

// removals reads the marks, each once.
func (l *layout) removals(ctx context.Context) (marks []string, err error) {
	subject := l.control.subject(removalsSubject)
	m, err := l.control.first(ctx, subject)
	for ; m != nil && err == nil; m, err = l.control.get(ctx, getRequest{Seq: m.at + 1, Next: subject}) {
		for text := range strings.Lines(string(m.body)) {
			marks = append(marks, strings.TrimSpace(text))
		}
	}
	slices.Sort(marks)
	return slices.Compact(marks), err
}

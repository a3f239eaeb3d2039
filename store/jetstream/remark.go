package jetstream

import (
	"context"
	"maps"
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/relation"
)

// remark finds the marks that become untrue when the events replace their old lines. The new
// index names these marks, so that they are erased with the replaced messages. What they said
// of other events, and what is new, is marked again together with the frame.
func (r *rewriting) remark(ctx context.Context, events []event.Event) error {
	for i := range events {
		if events[i].Seq == r.view.first() {
			if err := r.relate(ctx, &events[i]); err != nil {
				return err
			}
		}
	}
	return r.reuse(ctx, events)
}

// relate finds the marks of relations that a new first event does not have.
func (r *rewriting) relate(ctx context.Context, first *event.Event) error {
	found, err := r.stream.messages(ctx, []string{r.stream.subject(relatedSubject, "*", encodeName(r.session))})
	if err != nil {
		return err
	}
	r.relations = relation.Of(first)
	var subjects []string
	for _, name := range r.relations {
		subjects = append(subjects, r.stream.related(name, encodeName(r.session)))
	}
	for _, m := range found {
		if !slices.Contains(subjects, m.subject) {
			r.index.marks = append(r.index.marks, m.at)
		}
	}
	return nil
}

// reuse finds the marks of blobs that the new lines of events do not list.
func (r *rewriting) reuse(ctx context.Context, events []event.Event) error {
	replaced, lists, unmarked := map[int64]bool{}, map[use]bool{}, map[use]bool{}
	for i := range events {
		replaced[events[i].Seq] = true
	}
	for _, u := range usesOf(events) {
		lists[u], unmarked[u] = true, true
	}
	found, err := r.stream.messages(ctx, r.markSubjects())
	if err != nil {
		return err
	}
	untrue := func(u use) bool { return replaced[u.seq] && !lists[u] }
	for _, m := range found {
		uses, err := r.stream.parseMark(m)
		if err != nil {
			return err
		}
		for _, u := range uses {
			delete(unmarked, u)
		}
		if slices.ContainsFunc(uses, untrue) {
			r.index.marks = append(r.index.marks, m.at)
			r.uses = append(r.uses, slices.DeleteFunc(uses, untrue)...)
		}
	}
	r.uses = slices.AppendSeq(r.uses, maps.Keys(unmarked))
	return nil
}

// markSubjects returns the subjects that may have marks of the replaced lines. If such a line
// is damaged, these are all subjects with marks of blobs of the session.
func (r *rewriting) markSubjects() (subjects []string) {
	name := encodeName(r.session)
	for _, line := range r.old {
		e, err := event.Parse(line, r.session)
		if err != nil {
			return []string{r.stream.subject(markSubject, "*", name)}
		}
		for _, u := range usesOf([]event.Event{e}) {
			for _, token := range tokens(u.digest) {
				subjects = append(subjects, r.stream.subject(markSubject, token, name))
			}
		}
	}
	slices.Sort(subjects)
	return slices.Compact(subjects)
}

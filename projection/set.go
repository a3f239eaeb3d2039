package projection

import (
	"fmt"

	"github.com/convlog/convlog/event"
)

// Set is projections that are loaded in one reading and snapshotted as one
// event, whose body has a part for each.
type Set struct {
	// Name is that of the set's snapshots. Empty, in a set of one part, it is
	// that part's name.
	Name  string
	Parts []Part
}

// Of makes a set of parts.
func Of(name string, parts ...Part) Set { return Set{Name: name, Parts: parts} }

func (s Set) check() error {
	switch {
	case len(s.Parts) == 0:
		return fmt.Errorf("%w: %q has no parts", ErrInvalidSet, s.Name)
	case s.name() == "" && len(s.Parts) == 1:
		return fmt.Errorf("%w: the projection has no name", ErrInvalidSet)
	case s.name() == "":
		return fmt.Errorf("%w: a set of %d parts needs a name", ErrInvalidSet, len(s.Parts))
	}
	seen := map[string]bool{}
	for _, p := range s.Parts {
		name := p.ProjectionName()
		if name == "" {
			return fmt.Errorf("%w: a part of %q has no name", ErrInvalidSet, s.Name)
		}
		if seen[name] {
			return fmt.Errorf("%w: %q has two parts named %q", ErrInvalidSet, s.Name, name)
		}
		seen[name] = true
	}
	return nil
}

func (s Set) name() string {
	if s.Name == "" && len(s.Parts) == 1 {
		return s.Parts[0].ProjectionName()
	}
	return s.Name
}

func (s Set) begin() []fold {
	folds := make([]fold, len(s.Parts))
	for i, p := range s.Parts {
		folds[i] = p.begin()
	}
	return folds
}

// version of the set's snapshots: that of a single part, else that of the form
// of a body with several.
func (s Set) version() int {
	if len(s.Parts) == 1 {
		return s.Parts[0].begin().version()
	}
	return bodyVersion
}

// inScope reports whether a fold of this scope sees the event at all.
func inScope(scope event.Scope, t event.Type, onPath bool) bool {
	if scope == event.SessionScope {
		return true
	}
	return onPath && t.Scope() != event.SessionScope
}

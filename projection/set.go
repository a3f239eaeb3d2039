package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
)

// Set is projections that are loaded in one reading and snapshotted as one
// event, whose body has a part for each.
type Set struct {
	// Name is that of the set's snapshots. Empty, in a set of one part, it is
	// that part's name.
	Name  string
	Parts []Part

	builtin bool // of this package
}

// Of makes a set of parts.
func Of(name string, parts ...Part) Set { return Set{Name: name, Parts: parts} }

func (s Set) check() error {
	if len(s.Parts) == 0 {
		return fmt.Errorf("%w: %q has no parts", ErrInvalidSet, s.Name)
	}
	if s.Name != "" && !s.builtin {
		if err := checkName(s.Name); err != nil {
			return err
		}
	}
	if s.name() == "" {
		return fmt.Errorf("%w: a set of %d parts needs a name", ErrInvalidSet, len(s.Parts))
	}
	seen := map[string]bool{}
	for _, p := range s.Parts {
		if p == nil {
			return fmt.Errorf("%w: a part of %q is nil", ErrInvalidSet, s.Name)
		}
		name := p.ProjectionName()
		if err := p.begin().check(); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%w: %q has two parts named %q", ErrInvalidSet, s.Name, name)
		}
		seen[name] = true
	}
	return nil
}

// checkName says why a program's own projection or set cannot have a name: names
// without a colon belong to this package, as those that begin with "convlog:" do.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a projection has no name", ErrInvalidSet)
	case !strings.Contains(name, ":"):
		return fmt.Errorf("%w: the name %q has no colon, as \"shop:%s\" has", ErrInvalidSet, name, name)
	case strings.HasPrefix(name, "convlog:"):
		return fmt.Errorf("%w: the name %q: the prefix \"convlog:\" is reserved", ErrInvalidSet, name)
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

// builtin are the projections of this package. Add yours to sets of your own.
func builtin() []Part {
	return []Part{History(), Transcript(), Info(), Usage(), Calls(), Control(), Children(), Tools(), Artifacts(), Custom(), Branches()}
}

// Session is what is snapshotted of a session together. Its parts can be loaded
// alone from the same snapshots.
func Session() Set {
	return builtinSet("session", History(), Info(), Usage(), Calls(), Control(), Children(), Artifacts(), Custom(), Branches())
}

func builtinSet(name string, parts ...Part) Set { return Set{Name: name, Parts: parts, builtin: true} }

// Names are those of the projections of this package, sorted.
func Names() (names []string) {
	for _, p := range builtin() {
		names = append(names, p.ProjectionName())
	}
	slices.Sort(names)
	return names
}

// ByName is the projection of this package with that name, or
// ErrUnknownProjection.
func ByName(name string) (Part, error) {
	for _, p := range builtin() {
		if p.ProjectionName() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownProjection, name)
}

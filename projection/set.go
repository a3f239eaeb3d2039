package projection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/convlog/convlog/event"
)

// Set is a list of projections that are loaded in one pass. A snapshot of a set is
// one event whose body has a part for each projection.
type Set struct {
	// Name is the name of the set's snapshots. If it is empty and the set has one
	// part, it is the name of the part.
	Name  string
	Parts []Part

	builtin bool // a set of this package
}

// Of returns a set of parts.
func Of(name string, parts ...Part) Set { return Set{Name: name, Parts: parts} }

func (s Set) check() error {
	if len(s.Parts) == 0 {
		return fmt.Errorf("%w: %q has no parts", errInvalidSet, s.Name)
	}
	if s.Name != "" && !s.builtin {
		if err := checkName(s.Name); err != nil {
			return err
		}
	}
	if s.name() == "" {
		return fmt.Errorf("%w: a set of %d parts needs a name; set Name", errInvalidSet, len(s.Parts))
	}
	seen := map[string]bool{}
	for _, p := range s.Parts {
		if p == nil {
			return fmt.Errorf("%w: a part of %q is nil", errInvalidSet, s.Name)
		}
		name := p.ProjectionName()
		if err := p.begin().check(); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%w: %q has two parts named %q", errInvalidSet, s.Name, name)
		}
		seen[name] = true
	}
	return nil
}

// checkName returns an error if a program's own projection or set cannot have the
// name. Names without a colon and names that begin with "convlog:" belong to this
// package.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a projection has no name; set Name", errInvalidSet)
	case !strings.Contains(name, ":"):
		return fmt.Errorf("%w: the name %q has no colon; use a prefix, for example \"shop:%s\"", errInvalidSet, name, name)
	case strings.HasPrefix(name, "convlog:"):
		return fmt.Errorf("%w: the name %q: the prefix \"convlog:\" is reserved; use another", errInvalidSet, name)
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

// version is the version of the set's snapshots: the version of a single part, or
// bodyVersion if the body has several parts.
func (s Set) version() int {
	if len(s.Parts) == 1 {
		return s.Parts[0].begin().version()
	}
	return bodyVersion
}

// inScope reports whether a fold gets an event whose type has a scope.
func inScope(fold, scope event.Scope, onPath bool) bool {
	return fold == event.SessionScope || onPath && scope != event.SessionScope
}

// builtin returns the projections of this package.
func builtin() []Part {
	return []Part{History(), Transcript(), Info(), Usage(), Calls(), Control(), Children(), Tools(), Artifacts(), Custom(), Branches()}
}

// Session is the set of projections that logtool snapshots. Its parts can be loaded
// one by one from the same snapshots.
func Session() Set {
	return builtinSet("session", History(), Info(), Usage(), Calls(), Control(), Children(), Artifacts(), Custom(), Branches())
}

func builtinSet(name string, parts ...Part) Set { return Set{Name: name, Parts: parts, builtin: true} }

// Names returns the names of the projections of this package, sorted.
func Names() (names []string) {
	for _, p := range builtin() {
		names = append(names, p.ProjectionName())
	}
	slices.Sort(names)
	return names
}

// ByName returns the projection of this package with the name, or
// ErrUnknownProjection.
func ByName(name string) (Part, error) {
	for _, p := range builtin() {
		if p.ProjectionName() == name {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownProjection, name)
}

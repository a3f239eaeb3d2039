package projection

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

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

// StateJSON is the state of one part of a loaded set as JSON, as it would stand
// in a snapshot; ErrUnknownProjection if the set has no such part.
func StateJSON(l States, name string) (jsontext.Value, error) {
	for _, f := range foldsOf(l) {
		if f.name() == name {
			return f.encode()
		}
	}
	return nil, fmt.Errorf("%w: %q is not in the set", ErrUnknownProjection, name)
}

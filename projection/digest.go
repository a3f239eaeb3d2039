package projection

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Canonical rewrites a JSON value so that equal values have equal bytes: it sorts
// members, removes white space and writes strings with the fewest escapes. Number
// literals stay: 9007199254740993 and 9007199254740992 differ, and so do 1 and 1.0.
func Canonical(v jsontext.Value) (jsontext.Value, error) {
	c := v.Clone()
	err := c.Format(jsontext.ReorderRawObjects(true), jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false), jsontext.PreserveRawStrings(false), jsontext.SpaceAfterComma(false))
	if err != nil {
		return nil, fmt.Errorf("canonical JSON: %w", err)
	}
	return c, nil
}

// CanonicalDigest returns the digest of v's canonical JSON.
func CanonicalDigest(v jsontext.Value) (event.Digest, error) {
	c, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return event.DigestOf(c), nil
}

// digestOf returns the digest of the canonical JSON of v.
func digestOf(v any) (event.Digest, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	return CanonicalDigest(b)
}

// noDigest is the Digest of a projection whose state is not content.
func noDigest[S any](*S) (event.Digest, error) { return "", nil }

// Digest identifies the content of the states. Of a set of one part it is the digest
// of the part. Of other sets it covers the parts of path scope, or all parts if no
// part has path scope. Ids, seqs and times do not change it, nor do events of session
// scope.
func (l *Loaded) Digest() (event.Digest, error) {
	digests := map[string]event.Digest{}
	for _, f := range l.content() {
		d, err := f.digest()
		if err != nil {
			return "", fmt.Errorf("digest of %s: %w", f.name(), err)
		}
		if len(l.folds) == 1 {
			return d, nil
		}
		if d != "" {
			digests[f.name()] = d
		}
	}
	return digestOf(digests)
}

// content returns the folds of path scope, or all folds if none has path scope.
func (l *Loaded) content() (folds []fold) {
	for _, f := range l.folds {
		if f.scope() != event.SessionScope {
			folds = append(folds, f)
		}
	}
	if len(folds) == 0 {
		return l.folds
	}
	return folds
}

// chain is a rolling digest over a list of items.
type chain struct {
	link   event.Digest
	length int
	frozen bool // the next item gets a freeze before it
}

// extend adds the items after the first c.length of the list.
func (c *chain) extend(items []item) error {
	for i := range items {
		it := &items[i]
		if it.kind == freezeItem {
			c.frozen, c.length = true, c.length+1
			continue
		}
		text := append(make([]byte, 0, len(c.link)+len(it.data)+2), c.link...)
		if c.frozen {
			text = append(text, byte(freezeItem))
		}
		canonical, err := Canonical(it.data)
		if err != nil {
			return err
		}
		c.link, c.frozen = event.DigestOf(append(append(text, it.letter()), canonical...)), false
		c.length++
	}
	return nil
}

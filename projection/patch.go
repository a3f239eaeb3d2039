package projection

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Why a patch does not apply. Each comes in a *PatchError.
var (
	// ErrNoTarget: the document has nothing at the path.
	ErrNoTarget = errors.New("nothing is there")
	// ErrTestFailed: a test found another value.
	ErrTestFailed = errors.New("test failed")
	// ErrInvalidPatch: the patch is not of RFC 6902.
	ErrInvalidPatch = errors.New("invalid patch")
	// ErrDocumentTooLarge: the document would have more than 64 MiB or 1,000 levels,
	// or the patch does so much to a large one that it takes seconds.
	ErrDocumentTooLarge = errors.New("document too large")
)

// PatchError says which operation of a patch does not apply. Nothing of such a
// patch is applied.
type PatchError struct {
	// Index counts the operations from 0; -1 is the patch as a whole.
	Index int
	Op    string
	Path  string
	Err   error
}

func (e *PatchError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("patch: %v", e.Err)
	}
	return fmt.Sprintf("patch: operation %d (%s %q): %v", e.Index, e.Op, e.Path, e.Err)
}

func (e *PatchError) Unwrap() error { return e.Err }

// ApplyPatch applies a JSON Patch (RFC 6902) to a document, wholly or not at
// all: an operation that does not apply, and a document that is no JSON value,
// is a *PatchError. Number literals and
// the order of members stay as they are.
func ApplyPatch(document, patch jsontext.Value) (jsontext.Value, error) {
	n, err := parseDocument(document)
	if err != nil {
		return nil, &PatchError{Index: -1, Err: fmt.Errorf("document: %w", err)}
	}
	if n, err = n.patched(patch); err != nil {
		return nil, err
	}
	return n.value(), nil
}

// operation is one of a patch.
type operation struct {
	Op    string         `json:"op"`
	Path  *string        `json:"path"`
	From  *string        `json:"from"`
	Value jsontext.Value `json:"value"`
}

func (n *document) patched(patch jsontext.Value) (*document, error) {
	var ops []operation
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, &PatchError{Index: -1, Err: fmt.Errorf("%w: %w", ErrInvalidPatch, err)}
	}
	steps := 0
	for i := range ops {
		var next *document
		err := ops[i].spend(n, &steps)
		if err == nil {
			next, err = ops[i].apply(n)
		}
		if err == nil {
			err = next.check()
		}
		if err != nil {
			e := &PatchError{Index: i, Op: ops[i].Op, Err: err}
			if ops[i].Path != nil {
				e.Path = *ops[i].Path
			}
			return nil, e
		}
		n = next
	}
	return n, nil
}

// maxSteps is how many members and items all operations of a patch may pass by.
const maxSteps = 1 << 28

// spend counts what the operation passes by on its paths, which is what it takes.
func (o *operation) spend(n *document, steps *int) error {
	for _, text := range []*string{o.Path, o.From} {
		names, err := pointer(text, "path")
		if err != nil {
			continue // is found by apply
		}
		at := n
		for _, name := range names {
			*steps += len(at.members) + len(at.items)
			i, err := at.place(name, false)
			if err != nil {
				break
			}
			at = at.child(i)
		}
	}
	if *steps > maxSteps {
		return fmt.Errorf("%w: the patch takes more than %d steps", ErrDocumentTooLarge, maxSteps)
	}
	return nil
}

func (o *operation) apply(n *document) (*document, error) {
	path, err := pointer(o.Path, "path")
	if err != nil {
		return nil, err
	}
	switch o.Op {
	case "remove":
		return n.edit(path, nil, removing)
	case "move", "copy":
		return o.transfer(n, path)
	}
	if len(o.Value) == 0 {
		return nil, fmt.Errorf("%w: value is missing, or the operation is unknown", ErrInvalidPatch)
	}
	value, err := parseDocument(o.Value)
	if err != nil {
		return nil, err
	}
	switch o.Op {
	case "add":
		return n.edit(path, value, adding)
	case "replace":
		return n.edit(path, value, replacing)
	case "test":
		at, err := n.at(path)
		if err == nil && !at.equal(value) {
			err = ErrTestFailed
		}
		return n, err
	}
	return nil, fmt.Errorf("%w: the operation is unknown", ErrInvalidPatch)
}

// transfer moves or copies.
func (o *operation) transfer(n *document, path []string) (*document, error) {
	from, err := pointer(o.From, "from")
	if err != nil {
		return nil, err
	}
	value, err := n.at(from)
	if err != nil || o.Op == "copy" {
		return n.editIf(err, path, value)
	}
	if slices.Equal(from, path) {
		return n, nil
	}
	if len(path) > len(from) && slices.Equal(path[:len(from)], from) {
		return nil, fmt.Errorf("%w: a value cannot be moved into itself", ErrInvalidPatch)
	}
	n, err = n.edit(from, nil, removing)
	return n.editIf(err, path, value)
}

func (n *document) editIf(err error, path []string, value *document) (*document, error) {
	if err != nil {
		return nil, err
	}
	return n.edit(path, value, adding)
}

// pointer splits a JSON pointer (RFC 6901) into its names.
func pointer(text *string, what string) ([]string, error) {
	if text == nil {
		return nil, fmt.Errorf("%w: %s is missing", ErrInvalidPatch, what)
	}
	if *text == "" {
		return nil, nil
	}
	names := strings.Split(*text, "/")
	if names[0] != "" {
		return nil, fmt.Errorf("%w: %s %q is not a JSON pointer", ErrInvalidPatch, what, *text)
	}
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, fmt.Errorf("%w: %s %q is not a JSON pointer", ErrInvalidPatch, what, *text)
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names[1:], nil
}

// at is the value at a path.
func (n *document) at(path []string) (*document, error) {
	for _, name := range path {
		i, err := n.place(name, false)
		if err != nil {
			return nil, err
		}
		n = n.child(i)
	}
	return n, nil
}

// place is the index of a member or an item; with grow, the index behind the
// last is one too.
func (n *document) place(name string, grow bool) (int, error) {
	switch n.kind {
	case jsontext.KindBeginObject:
		if i := n.member(name); i >= 0 || grow {
			return i, nil
		}
	case jsontext.KindBeginArray:
		if grow && name == "-" {
			return len(n.items), nil
		}
		i, err := strconv.Atoi(name)
		if err == nil && strconv.Itoa(i) == name && i >= 0 && (i < len(n.items) || grow && i == len(n.items)) {
			return i, nil
		}
	}
	return 0, ErrNoTarget
}

func (n *document) child(i int) *document {
	if n.kind == jsontext.KindBeginObject {
		return n.members[i].value
	}
	return n.items[i]
}

// change is what edit does at the end of its path.
type change int

const (
	adding change = iota
	replacing
	removing
)

// edit is n with a change at a path.
func (n *document) edit(path []string, value *document, what change) (*document, error) {
	switch len(path) {
	case 0:
		if what == removing {
			return null(), nil
		}
		return value, nil
	case 1:
		i, err := n.place(path[0], what == adding)
		if err != nil {
			return nil, err
		}
		return n.with(i, path[0], value, what), nil
	}
	i, err := n.place(path[0], false)
	if err != nil {
		return nil, err
	}
	inner, err := n.child(i).edit(path[1:], value, what)
	if err != nil {
		return nil, err
	}
	return n.with(i, path[0], inner, replacing), nil
}

// with is n with the child at i changed; -1 is a member that it lacks.
func (n *document) with(i int, name string, value *document, what change) *document {
	c := *n
	var old *document
	if what == removing || what == replacing || i >= 0 && n.kind == jsontext.KindBeginObject {
		old = n.child(i)
	}
	if n.kind == jsontext.KindBeginArray {
		switch what {
		case adding:
			c.items = slices.Concat(n.items[:i], []*document{value}, n.items[i:])
		case replacing:
			c.items = slices.Clone(n.items)
			c.items[i] = value
		case removing:
			c.items = slices.Concat(n.items[:i], n.items[i+1:])
		}
		return c.changed(n, old, value)
	}
	c.members = slices.Clone(n.members)
	switch {
	case what == removing:
		c.members = slices.Delete(c.members, i, i+1)
		c.size -= len(n.members[i].quoted) + 1
	case i < 0:
		quoted, _ := jsontext.AppendQuote(nil, name) // of a decoded string
		c.members = append(c.members, documentMember{name: name, quoted: quoted, value: value})
		c.size += len(quoted) + 1
	default:
		c.members[i].value = value
	}
	return c.changed(n, old, value)
}

// null is the document before the first patch.
func null() *document {
	return &document{kind: jsontext.KindNull, raw: jsontext.Value("null"), size: 4, depth: 1}
}

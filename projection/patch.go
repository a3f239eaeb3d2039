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

// Reasons why a patch does not apply. Snapshots contain the texts (PatchError.Reason): do
// not change a text.
var (
	errNoTarget         = errors.New("nothing is there")
	errTestFailed       = errors.New("test failed")
	errInvalidPatch     = errors.New("invalid patch")
	errDocumentTooLarge = errors.New("document too large")
)

// PatchError is the operation that does not apply. No operation of the patch is applied
// then. Load the state, and make the patch anew.
type PatchError struct {
	// Seq is the event of a patch in the log, see CustomState.Refused; 0 for a patch that is
	// not appended.
	Seq int64 `json:"seq"`
	// Index is the index of the operation from 0; -1 is the whole patch.
	Index int    `json:"index"`
	Op    string `json:"op,omitzero"`
	Path  string `json:"path,omitzero"`
	// Reason is one of these texts, which do not change:
	//
	//   - "nothing is there": the document has no value at the path.
	//   - "test failed": a test found another value.
	//   - "invalid patch": the patch does not follow RFC 6902.
	//   - "document too large": the document would have more than 64 MiB or 1,000 levels, or
	//     the patch would take seconds on a large document.
	Reason string `json:"reason"`
	// Err has the details; nil for a patch in the log.
	Err error `json:"-"`
}

func newPatchError(index int, err error) *PatchError {
	e := &PatchError{Index: index, Reason: errInvalidPatch.Error(), Err: err}
	for _, reason := range []error{errNoTarget, errTestFailed, errDocumentTooLarge} {
		if errors.Is(err, reason) {
			e.Reason = reason.Error()
		}
	}
	return e
}

func (e *PatchError) Error() string {
	why := e.Reason
	if e.Err != nil {
		why = e.Err.Error()
	}
	if e.Index < 0 {
		return "patch: " + why
	}
	return fmt.Sprintf("patch: operation %d (%s %q): %s", e.Index, e.Op, e.Path, why)
}

func (e *PatchError) Unwrap() error { return e.Err }

// ApplyPatch applies a JSON Patch (RFC 6902) to a document. It applies all operations
// or none. The error is a *PatchError if an operation does not apply or the document
// is not one JSON value. Number literals and the order of members stay.
func ApplyPatch(document, patch jsontext.Value) (jsontext.Value, error) {
	n, err := parseDocument(document)
	if err != nil {
		return nil, newPatchError(-1, fmt.Errorf("document: %w", err))
	}
	if n, err = n.patched(patch); err != nil {
		return nil, err
	}
	return n.value(), nil
}

// operation is an operation of a patch.
type operation struct {
	Op    string         `json:"op"`
	Path  *string        `json:"path"`
	From  *string        `json:"from"`
	Value jsontext.Value `json:"value"`
}

func (n *document) patched(patch jsontext.Value) (*document, error) {
	var ops []operation
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, newPatchError(-1, fmt.Errorf("%w: %w", errInvalidPatch, err))
	}
	steps := 0
	for i := range ops {
		var next *document
		err := ops[i].addSteps(n, &steps)
		if err == nil {
			next, err = ops[i].apply(n)
		}
		if err == nil {
			err = next.check()
		}
		if err != nil {
			e := newPatchError(i, err)
			e.Op = ops[i].Op
			if ops[i].Path != nil {
				e.Path = *ops[i].Path
			}
			return nil, e
		}
		n = next
	}
	return n, nil
}

// maxSteps limits the members and items that the operations of one patch search
// through.
const maxSteps = 1 << 28

// addSteps adds the members and items that the operation searches through.
func (o *operation) addSteps(n *document, steps *int) error {
	for _, text := range []*string{o.Path, o.From} {
		names, err := pointer(text, "path")
		if err != nil {
			continue // apply returns the error
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
		return fmt.Errorf("%w: the patch takes more than %d steps", errDocumentTooLarge, maxSteps)
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
		return nil, fmt.Errorf("%w: value is missing, or the operation is unknown", errInvalidPatch)
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
			err = errTestFailed
		}
		return n, err
	}
	return nil, fmt.Errorf("%w: the operation is unknown", errInvalidPatch)
}

// transfer moves or copies a value.
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
		return nil, fmt.Errorf("%w: a value cannot be moved into itself", errInvalidPatch)
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

// pointer splits a JSON pointer (RFC 6901) into its names. member is the operation's
// member with the pointer.
func pointer(text *string, member string) ([]string, error) {
	if text == nil {
		return nil, fmt.Errorf("%w: %s is missing", errInvalidPatch, member)
	}
	if *text == "" {
		return nil, nil
	}
	names := strings.Split(*text, "/")
	if names[0] != "" {
		return nil, fmt.Errorf("%w: %s %q is not a JSON pointer", errInvalidPatch, member, *text)
	}
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, fmt.Errorf("%w: %s %q is not a JSON pointer", errInvalidPatch, member, *text)
		}
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return names[1:], nil
}

// at returns the value at a path.
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

// place returns the index of a member or an item. With grow it also returns the index
// after the last item, and -1 for a missing member.
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
	return 0, errNoTarget
}

// change is the operation of edit at the end of its path.
type change int

const (
	adding change = iota
	replacing
	removing
)

// edit returns n with a change at a path.
func (n *document) edit(path []string, value *document, op change) (*document, error) {
	switch len(path) {
	case 0:
		if op == removing {
			return nullDocument(), nil
		}
		return value, nil
	case 1:
		i, err := n.place(path[0], op == adding)
		if err != nil {
			return nil, err
		}
		return n.with(i, path[0], value, op), nil
	}
	i, err := n.place(path[0], false)
	if err != nil {
		return nil, err
	}
	inner, err := n.child(i).edit(path[1:], value, op)
	if err != nil {
		return nil, err
	}
	return n.with(i, path[0], inner, replacing), nil
}

// with returns n with the child at i changed; -1 is a missing member.
func (n *document) with(i int, name string, value *document, op change) *document {
	c := *n
	var old *document
	isArray := n.kind == jsontext.KindBeginArray
	switch {
	case op == removing:
		old = n.child(i)
		c.ownLists()
		c.remove(i)
	case op == replacing, !isArray && i >= 0:
		old = n.child(i)
		c.replace(i, value)
	case isArray && i == len(n.items):
		c.items, c.array = appended(n.items, n.array, value, "")
	case isArray:
		c.ownLists()
		c.items, c.array = slices.Insert(c.items, i, value), nil
	default:
		quoted, _ := jsontext.AppendQuote(nil, name) // a decoded string is valid
		c.members, c.array = appended(n.members, n.array, documentMember{name: name, quoted: quoted, value: value}, name)
		c.size += len(quoted) + 1
	}
	return c.resize(n, old, value)
}

// remove removes the child at i from the lists of c.
func (c *document) remove(i int) {
	c.array = nil
	if c.kind == jsontext.KindBeginArray {
		c.items = slices.Delete(c.items, i, i+1)
		return
	}
	c.size -= len(c.members[i].quoted) + 1
	c.members = slices.Delete(c.members, i, i+1)
}

// nullDocument is the document before the first patch.
func nullDocument() *document {
	return &document{kind: jsontext.KindNull, raw: jsontext.Value("null"), size: 4, depth: 1}
}

package projection

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDocument and maxDepth limit the bytes and levels of a document. A short patch
// could otherwise copy a document into itself again and again.
const (
	maxDocument = 64 << 20
	maxDepth    = 1000
)

// document is an immutable JSON value. An edited document shares the unchanged parts.
// Literals stay unchanged, members stay in order.
type document struct {
	kind    jsontext.Kind // by the first byte: { [ " 0 t f n
	raw     jsontext.Value
	members []documentMember
	items   []*document
	array   *backing // of members or items that were added; else nil
	// replaced are the children that differ from the values in members or items, by index.
	replaced []replacement
	size     int // bytes when encoded
	depth    int
}

type documentMember struct {
	name   string
	quoted jsontext.Value
	value  *document
}

// parseDocument reads one JSON value.
func parseDocument(v jsontext.Value) (*document, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	n, err := readDocument(dec)
	if err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("there is more than one JSON value"), err)
	}
	return n, n.check()
}

func readDocument(dec *jsontext.Decoder) (*document, error) {
	switch dec.PeekKind() {
	case jsontext.KindBeginObject:
		return readObject(dec)
	case jsontext.KindBeginArray:
		return readArray(dec)
	}
	v, err := dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return &document{kind: v.Kind(), raw: v.Clone(), size: len(v), depth: 1}, nil
}

func readObject(dec *jsontext.Decoder) (*document, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var members []documentMember
	for dec.PeekKind() != jsontext.KindEndObject {
		quoted, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		m := documentMember{quoted: quoted.Clone()}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, err
		}
		m.name = string(name)
		if m.value, err = readDocument(dec); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
	_, err := dec.ReadToken()
	return object(members), err
}

func readArray(dec *jsontext.Decoder) (*document, error) {
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	var items []*document
	for dec.PeekKind() != jsontext.KindEndArray {
		n, err := readDocument(dec)
		if err != nil {
			return nil, err
		}
		items = append(items, n)
	}
	_, err := dec.ReadToken()
	return array(items), err
}

func object(members []documentMember) *document {
	n := &document{kind: jsontext.KindBeginObject, members: members, size: 1 + max(len(members), 1)}
	for i := range members {
		n.size += len(members[i].quoted) + 1 + members[i].value.size
		n.depth = max(n.depth, members[i].value.depth)
	}
	n.depth++
	return n
}

func array(items []*document) *document {
	n := &document{kind: jsontext.KindBeginArray, items: items, size: 1 + max(len(items), 1)}
	for _, item := range items {
		n.size += item.size
		n.depth = max(n.depth, item.depth)
	}
	n.depth++
	return n
}

// children yields the values of members or items.
func (n *document) children(yield func(*document) bool) {
	for i := range len(n.members) + len(n.items) {
		if !yield(n.child(i)) {
			return
		}
	}
}

// resize updates the size and the depth of c, a copy of n without child old and with
// child value. Both may be nil. If old was the deepest child, it searches the new
// depth.
func (c *document) resize(n, old, value *document) *document {
	c.size += max(len(c.members)+len(c.items), 1) - max(len(n.members)+len(n.items), 1)
	if old != nil {
		c.size -= old.size
	}
	if value != nil {
		c.size += value.size
		c.depth = max(c.depth, value.depth+1)
	}
	if old == nil || old.depth+1 < c.depth {
		return c
	}
	deepest := 0
	for child := range c.children {
		if deepest = max(deepest, child.depth); deepest == old.depth {
			break
		}
	}
	c.depth = deepest + 1
	return c
}

// check returns errDocumentTooLarge for a document over the limits.
func (n *document) check() error {
	if n.size > maxDocument || n.depth > maxDepth {
		return fmt.Errorf("%w: %d bytes in %d levels", errDocumentTooLarge, n.size, n.depth)
	}
	return nil
}

// value encodes the document without white space.
func (n *document) value() jsontext.Value { return n.append(make([]byte, 0, n.size)) }

func (n *document) append(dst []byte) []byte {
	switch n.kind {
	case jsontext.KindBeginObject:
		dst = append(dst, '{')
		for i := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, n.members[i].quoted...), ':')
			dst = n.child(i).append(dst)
		}
		return append(dst, '}')
	case jsontext.KindBeginArray:
		dst = append(dst, '[')
		for i := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = n.child(i).append(dst)
		}
		return append(dst, ']')
	}
	return append(dst, n.raw...)
}

// member returns the index of a member; -1 if there is none.
func (n *document) member(name string) int {
	if i, known := n.array.find(n.members, name); known {
		return i
	}
	return slices.IndexFunc(n.members, func(m documentMember) bool { return m.name == name })
}

// equal compares as RFC 6902 does: numbers by value, members in any order.
func (n *document) equal(o *document) bool {
	if n.kind != o.kind {
		return false
	}
	switch n.kind {
	case jsontext.KindBeginObject:
		return n.sameMembers(o)
	case jsontext.KindBeginArray:
		return slices.EqualFunc(slices.Collect(n.children), slices.Collect(o.children), (*document).equal)
	case jsontext.KindString:
		a, errA := jsontext.AppendUnquote(nil, n.raw)
		b, errB := jsontext.AppendUnquote(nil, o.raw)
		return errA == nil && errB == nil && bytes.Equal(a, b)
	case jsontext.KindNumber:
		return sameNumber(string(n.raw), string(o.raw))
	}
	return true
}

func (n *document) sameMembers(o *document) bool {
	if len(n.members) != len(o.members) {
		return false
	}
	values := make(map[string]*document, len(o.members))
	for i, m := range o.members {
		values[m.name] = o.child(i)
	}
	for i, m := range n.members {
		if value := values[m.name]; value == nil || !n.child(i).equal(value) {
			return false
		}
	}
	return true
}

// sameNumber compares number literals by their exact value.
func sameNumber(a, b string) bool {
	x, y := decimalOf(a), decimalOf(b)
	return x.negative == y.negative && x.digits == y.digits && x.exponent.Cmp(y.exponent) == 0
}

// decimal is digits × 10^exponent. digits has no zeros at its ends.
type decimal struct {
	negative bool
	digits   string
	exponent *big.Int
}

func decimalOf(literal string) decimal {
	d := decimal{exponent: new(big.Int)}
	literal, d.negative = strings.CutPrefix(literal, "-")
	mantissa := literal
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa = literal[:i]
		d.exponent.SetString(strings.TrimPrefix(literal[i+1:], "+"), 10)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{exponent: new(big.Int)}
	}
	d.exponent.Add(d.exponent, big.NewInt(int64(len(digits)-len(d.digits)-len(fraction))))
	return d
}

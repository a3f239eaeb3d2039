// Package rebuild makes the records of a program's files again from the events that an import
// made of them. An event has no copy of its record: some members became fields of the event,
// and others are in its extra. The digest in the origin of the event tells whether the bytes
// are the bytes of the file.
package rebuild

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
)

// Choices are the places where an event does not say how the file had a record: whether a
// text was a string or a list of one block, for example. A builder asks for each by a name.
type Choices struct {
	all []choice
	// likely are the alternatives that fitted the records before.
	likely map[string]int
}

type choice struct {
	name   string
	n      int // number of alternatives
	picked int // counted from the likely one
}

// Of returns which of n alternatives to take: at first the one that fitted the records before,
// or 0. One name has one answer in a record.
func (c *Choices) Of(name string, n int) int {
	for i := range c.all {
		if c.all[i].name == name {
			return (c.all[i].picked + c.likely[name]) % n
		}
	}
	c.all = append(c.all, choice{name: name, n: n})
	return c.likely[name] % n
}

// Is is Of with two alternatives.
func (c *Choices) Is(name string) bool { return c.Of(name, 2) == 1 }

// fitted notes the alternatives that fitted a record.
func (c *Choices) fitted() {
	for _, x := range c.all {
		c.likely[x.name] = (x.picked + c.likely[x.name]) % x.n
	}
}

// mostBuilds limits how often a record is built.
const mostBuilds = 1000

// search builds a record until it has the size and the digest of the file's. First it varies
// one choice or two, then all of them. If none fits, it returns the most likely record, and
// same is false.
func (c *Choices) search(size int64, d event.Digest, build func(*Choices) (jsontext.Value, error)) (record jsontext.Value, same bool, err error) {
	c.all = c.all[:0]
	first, err := build(c)
	if err != nil || len(first) == 0 {
		return nil, false, err
	}
	fits := func(v jsontext.Value) bool { return int64(len(v)) == size && event.DigestOf(v) == d }
	if fits(first) {
		return first, true, nil
	}
	builds := 0
	try := func() (jsontext.Value, bool) {
		builds++
		v, err := build(c)
		if err != nil || !fits(v) {
			return nil, false
		}
		c.fitted()
		return v, true
	}
	for i := 0; i < len(c.all); i++ { // a choice can lead to others
		for c.all[i].picked = 1; c.all[i].picked < c.all[i].n; c.all[i].picked++ {
			if v, ok := try(); ok {
				return v, true, nil
			}
			for j := 0; j < i; j++ {
				for c.all[j].picked = 1; c.all[j].picked < c.all[j].n; c.all[j].picked++ {
					if v, ok := try(); ok {
						return v, true, nil
					}
				}
				c.all[j].picked = 0
			}
		}
		c.all[i].picked = 0
	}
	for builds < mostBuilds && c.next() {
		if v, ok := try(); ok {
			return v, true, nil
		}
	}
	return first, false, nil
}

// next is the next combination of all choices; false after the last one.
func (c *Choices) next() bool {
	for i := range slices.Backward(c.all) {
		if c.all[i].picked++; c.all[i].picked < c.all[i].n {
			return true
		}
		c.all[i].picked = 0
	}
	return false
}

// Object joins the members that an event kept, in the order of the file, with members that
// became fields of the event, in the order in which the program writes all of them. No order is
// that of the names. It leaves out members without a value.
func Object(order []string, kept jsontext.Value, converted ...rawjson.Member) jsontext.Value {
	var all []rawjson.Member
	if len(kept) > 0 {
		all, _ = rawjson.Members(kept) // an extra is an object
	}
	return rawjson.Object(Join(order, all, converted...))
}

// Join is Object for members.
func Join(order []string, kept []rawjson.Member, converted ...rawjson.Member) []rawjson.Member {
	all := slices.Clone(kept)
	slices.SortStableFunc(converted, func(a, b rawjson.Member) int {
		if order == nil {
			return strings.Compare(a.Name, b.Name)
		}
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	for _, m := range converted {
		if m.Value != nil {
			all = slices.Insert(all, place(order, all, m.Name), m)
		}
	}
	return all
}

// place is the index at which a member belongs: after the nearest member that comes before it
// in the order, or else before the first that comes after it, or else before all.
func place(order []string, all []rawjson.Member, name string) int {
	if order == nil {
		at := slices.IndexFunc(all, func(m rawjson.Member) bool { return m.Name > name })
		if at < 0 {
			return len(all)
		}
		return at
	}
	at := slices.Index(order, name)
	index := func(name string) int {
		return slices.IndexFunc(all, func(m rawjson.Member) bool { return m.Name == name })
	}
	for i := at - 1; i >= 0; i-- {
		if j := index(order[i]); j >= 0 {
			return j + 1
		}
	}
	for i := at + 1; i < len(order); i++ {
		if j := index(order[i]); j >= 0 {
			return j
		}
	}
	return 0
}

// Order picks one of the orders in which versions of a program write an object. The last
// choice is that of the names.
func (c *Choices) Order(name string, orders [][]string) []string {
	if i := c.Of(name, len(orders)+1); i < len(orders) {
		return orders[i]
	}
	return nil
}

// Member is a member with a value; the value may be nil.
func Member(name string, value jsontext.Value) rawjson.Member {
	return rawjson.Member{Name: name, Value: value}
}

// Text is a member with a text; without a value if the text is empty.
func Text(name, text string) rawjson.Member {
	if text == "" {
		return rawjson.Member{Name: name}
	}
	return rawjson.Member{Name: name, Value: Quote(text)}
}

// Quote is a text as a JSON string, as JavaScript and Rust write it.
func Quote(text string) jsontext.Value {
	v, _ := jsontext.AppendQuote(nil, text) // invalid UTF-8 becomes U+FFFD
	return v
}

// Spaced is a value with a space after each comma and each colon, as Python writes it.
func Spaced(v jsontext.Value) jsontext.Value {
	spaced := v.Clone()
	if spaced.Format(jsontext.PreserveRawStrings(true), jsontext.SpaceAfterComma(true), jsontext.SpaceAfterColon(true), jsontext.Multiline(false)) != nil {
		return v
	}
	return spaced
}

// Sorted is a value with the members of all its objects in the order of their names. escaped
// writes &, < and > as escapes, as Go does.
func Sorted(v jsontext.Value, escaped bool) jsontext.Value {
	sorted := v.Clone()
	if sorted.Format(jsontext.PreserveRawStrings(!escaped), jsontext.EscapeForHTML(escaped), jsontext.ReorderRawObjects(true), jsontext.Multiline(false)) != nil {
		return v
	}
	return sorted
}

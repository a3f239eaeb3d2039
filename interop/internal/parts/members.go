package parts

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Members are what is left of an object that is being read.
type Members struct {
	members []rawjson.Member
	// Failed says that a member was not what it should be.
	Failed bool
}

// Open begins to read an object.
func Open(object jsontext.Value) (Members, error) {
	members, err := rawjson.Members(object)
	return Members{members: members}, err
}

// Has reports whether a member is left.
func (o *Members) Has(name string) bool {
	return slices.ContainsFunc(o.members, func(m rawjson.Member) bool { return m.Name == name })
}

// Peek is the value of a member, which stays; nil if there is none.
func (o *Members) Peek(name string) jsontext.Value {
	for _, m := range o.members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// PeekText is a member that is a string, which stays; empty if it is none.
func (o *Members) PeekText(name string) string {
	s, _ := rawjson.Text(o.Peek(name))
	return s
}

// Take removes a member and gives its value; nil if there is none.
func (o *Members) Take(name string) jsontext.Value {
	for i, m := range o.members {
		if m.Name == name {
			o.members = append(o.members[:i:i], o.members[i+1:]...)
			return m.Value
		}
	}
	return nil
}

// Put adds a member to what is left; nil adds none.
func (o *Members) Put(name string, v jsontext.Value) {
	if v == nil {
		return
	}
	o.members = append(o.members, rawjson.Member{Name: name, Value: v})
}

// Text takes a string. Reading fails where the member is something else.
func (o *Members) Text(name string) string {
	v := o.Take(name)
	if v == nil {
		return ""
	}
	s, ok := rawjson.Text(v)
	o.Failed = o.Failed || !ok
	return s
}

// Required takes a string that must not be empty.
func (o *Members) Required(name string) string {
	s := o.Text(name)
	o.Failed = o.Failed || s == ""
	return s
}

// Maybe takes a string, and leaves a member that is something else.
func (o *Members) Maybe(name string) string {
	s, ok := rawjson.Text(o.Peek(name))
	if ok {
		o.Take(name)
	}
	return s
}

// Flag takes a boolean; null is false.
func (o *Members) Flag(name string) bool {
	v := o.Take(name)
	o.Failed = o.Failed || v != nil && v.Kind() != 't' && v.Kind() != 'f' && v.Kind() != 'n'
	return v.Kind() == 't'
}

// Rest is an object of the members that are left, in order; nil if none is.
func (o *Members) Rest() jsontext.Value { return rawjson.NonEmpty(o.members) }

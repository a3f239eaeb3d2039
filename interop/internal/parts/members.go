package parts

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Members are the members of an object that are not parsed yet.
type Members struct {
	members []rawjson.Member
	many    many // the members before members, if they are many
	// Failed says that a member was missing or of the wrong type.
	Failed bool
}

// Open returns the members of an object.
func Open(object jsontext.Value) (Members, error) {
	if many := openMany(object); many.any() {
		return Members{many: many}, nil
	}
	members, err := rawjson.Members(object)
	return Members{members: members}, err
}

// Has reports whether there is a member with the name.
func (o *Members) Has(name string) bool {
	return o.Peek(name) != nil
}

// Peek returns the value of a member, and does not remove it; nil if there is none.
func (o *Members) Peek(name string) jsontext.Value {
	if v, _ := o.many.find(name); v != nil {
		return v
	}
	for _, m := range o.members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// PeekText returns the text of a member, and does not remove it; empty if the member
// is no string.
func (o *Members) PeekText(name string) string {
	s, _ := rawjson.Text(o.Peek(name))
	return s
}

// Take removes a member and returns its value; nil if there is none.
func (o *Members) Take(name string) jsontext.Value {
	if v := o.many.take(name); v != nil {
		return v
	}
	for i, m := range o.members {
		if m.Name == name {
			o.members = append(o.members[:i:i], o.members[i+1:]...)
			return m.Value
		}
	}
	return nil
}

// Put adds a member, unless the value is nil.
func (o *Members) Put(name string, v jsontext.Value) {
	if v == nil {
		return
	}
	o.members = append(o.members, rawjson.Member{Name: name, Value: v})
}

// Text takes a string. It sets Failed if the member is no string.
func (o *Members) Text(name string) string {
	v := o.Take(name)
	if v == nil {
		return ""
	}
	s, ok := rawjson.Text(v)
	o.Failed = o.Failed || !ok
	return s
}

// Required takes a string. It sets Failed if the string is empty or missing.
func (o *Members) Required(name string) string {
	s := o.Text(name)
	o.Failed = o.Failed || s == ""
	return s
}

// Maybe takes a string. It does not remove a member that is no string.
func (o *Members) Maybe(name string) string {
	s, ok := rawjson.Text(o.Peek(name))
	if ok {
		o.Take(name)
	}
	return s
}

// Need sets Failed if the member is missing.
func (o *Members) Need(name string) { o.Failed = o.Failed || !o.Has(name) }

// Flag takes a boolean; null is false. It sets Failed if the member is neither.
func (o *Members) Flag(name string) bool {
	v := o.Take(name)
	o.Failed = o.Failed || v != nil && v.Kind() != 't' && v.Kind() != 'f' && v.Kind() != 'n'
	return v.Kind() == 't'
}

// Rest is an object of the remaining members, in order; nil if there are none.
func (o *Members) Rest() jsontext.Value {
	if o.many.any() {
		return o.many.rest(o.members, false)
	}
	return rawjson.NonEmpty(o.members)
}

// RestWithoutNulls is Rest without the members whose value is null.
func (o *Members) RestWithoutNulls() jsontext.Value {
	rest := slices.DeleteFunc(slices.Clone(o.members), func(m rawjson.Member) bool { return m.Value.Kind() == 'n' })
	if o.many.any() {
		return o.many.rest(rest, true)
	}
	return rawjson.NonEmpty(rest)
}

package rawjson

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of a JSON object.
type Member struct {
	Name  string
	Value jsontext.Value

	quoted jsontext.Value // the name as read, if it has escapes
}

var errNotObject = errors.New("not an object")

// Members splits a whole object into its members, in order. Values share the
// bytes of the object and are not compacted. A text that is not one well-formed
// object with unique names is an error.
func Members(object jsontext.Value) ([]Member, error) {
	s := takeSplitter()
	defer s.release()
	sure := s.Members(object, func(name, value Span) {
		s.members = append(s.members, Member{Name: s.name(object[name.From:name.To]), Value: object[value.From:value.To]})
	})
	if sure {
		return slices.Clone(s.members), nil
	}
	return decodeMembers(object)
}

// decodeMembers is Members for objects the scanner is unsure of.
func decodeMembers(object jsontext.Value) (members []Member, err error) {
	d, err := enter(object, '{', errNotObject)
	if err != nil {
		return nil, err
	}
	for d.PeekKind() != '}' {
		quoted, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		m := Member{quoted: quoted.Clone()}
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return nil, err
		}
		m.Name = string(name)
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		m.Value = object[end-len(value) : end : end]
		members = append(members, m)
	}
	return members, leave(d)
}

// Value finds a member's value by name.
func Value(members []Member, name string) (value jsontext.Value, ok bool) {
	for i := range members {
		if members[i].Name == name {
			return members[i].Value, true
		}
	}
	return nil, false
}

// Set replaces the value of the member with that name, or adds one at the end.
func Set(members []Member, name string, value jsontext.Value) []Member {
	for i := range members {
		if members[i].Name == name {
			members[i].Value = value
			return members
		}
	}
	return append(members, Member{Name: name, Value: value})
}

// Object renders members as an object, in order, without white space. Names that
// were read are rendered as they were read.
func Object(members []Member) jsontext.Value {
	size := len("{}")
	for i := range members {
		size += len(members[i].Name) + len(members[i].Value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for i := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(members[i].AppendName(b), ':'), members[i].Value...)
	}
	return append(b, '}')
}

// AppendName appends the quoted name.
func (m *Member) AppendName(b []byte) []byte {
	if m.quoted != nil {
		return append(b, m.quoted...)
	}
	b, _ = jsontext.AppendQuote(b, m.Name) // invalid UTF-8 becomes U+FFFD
	return b
}

var errNotArray = errors.New("not an array")

// Elements splits a whole array into its elements, which share its bytes.
func Elements(array jsontext.Value) ([]jsontext.Value, error) {
	s := takeSplitter()
	defer s.release()
	sure := s.Elements(array, func(value Span) {
		s.elements = append(s.elements, array[value.From:value.To])
	})
	if sure {
		return slices.Clone(s.elements), nil
	}
	return decodeElements(array)
}

// decodeElements is Elements for arrays the scanner is unsure of.
func decodeElements(array jsontext.Value) (elements []jsontext.Value, err error) {
	d, err := enter(array, '[', errNotArray)
	if err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		elements = append(elements, array[end-len(value):end:end])
	}
	return elements, leave(d)
}

// enter begins to decode an object or array; other is the error for any other
// kind of value.
func enter(v jsontext.Value, kind jsontext.Kind, other error) (*jsontext.Decoder, error) {
	d := newDecoder(v)
	token, err := d.ReadToken()
	switch {
	case err != nil:
		return nil, unexpected(err)
	case token.Kind() != kind:
		return nil, other
	}
	return d, nil
}

var errTrailing = errors.New("more than one value")

// leave reads the end of what enter began, which must be the end of the text.
func leave(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return unexpected(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w", errTrailing)
	}
	return nil
}

// unexpected is io.ErrUnexpectedEOF for io.EOF: the text ends too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// NonEmpty is Object, or nil if there are no members.
func NonEmpty(members []Member) jsontext.Value {
	if len(members) == 0 {
		return nil
	}
	return Object(members)
}

// Lookup finds a member's value in an object that is known to be well-formed. It
// reads no further than that member.
func Lookup(object jsontext.Value, name string) (value jsontext.Value, ok bool, err error) {
	s := takeSplitter()
	defer s.release()
	found := s.find(object, name)
	if found == (Span{}) {
		members, err := Members(object)
		value, ok = Value(members, name)
		return value, ok, err
	}
	return object[found.From:found.To:found.To], true, nil
}

// find locates a member's value; the zero Span if it is not found.
func (s *Scanner) find(object []byte, name string) (found Span) {
	s.Begin(object)
	s.space()
	s.object(func(n Span) bool {
		from := s.At
		if !s.Value() {
			return false
		}
		if string(object[n.From:n.To]) == name {
			found = Span{from, s.At}
			return false
		}
		return true
	})
	return found
}

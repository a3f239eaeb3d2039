package rawjson

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Member is one member of a JSON object.
type Member struct {
	Name  string
	Value jsontext.Value

	quoted jsontext.Value // the name with its quotes and escapes, if it has escapes
}

var errNotObject = errors.New("not an object")

// Members splits an object into its members, in order. The values share the object's
// bytes and may have white space inside. The error reports a text that is not one
// well-formed object with unique names.
func Members(object jsontext.Value) ([]Member, error) {
	s := takeSplitter()
	defer s.release()
	sure := s.splitObject(object, func(name, value span) {
		m := Member{Name: s.name(unescapedName(object[name.from:name.to])), Value: object[value.from:value.to]}
		if len(m.Name) < name.to-name.from {
			m.quoted = object[name.from-1 : name.to+1].Clone()
		}
		s.members = append(s.members, m)
	})
	if sure {
		return slices.Clone(s.members), nil
	}
	return decodeMembers(object)
}

// decodeMembers is Members for objects that the scanner cannot handle.
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

// Value returns the value of the member with a name.
func Value(members []Member, name string) (value jsontext.Value, ok bool) {
	for i := range members {
		if members[i].Name == name {
			return members[i].Value, true
		}
	}
	return nil, false
}

// Set replaces the value of the member with a name, or appends a member.
func Set(members []Member, name string, value jsontext.Value) []Member {
	for i := range members {
		if members[i].Name == name {
			members[i].Value = value
			return members
		}
	}
	return append(members, Member{Name: name, Value: value})
}

// Object renders members as an object, in order, without added white space. Names keep
// the escapes from Members.
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

// AppendName appends the quoted name to b.
func (m *Member) AppendName(b []byte) []byte {
	if m.quoted != nil {
		return append(b, m.quoted...)
	}
	b, _ = jsontext.AppendQuote(b, m.Name) // invalid UTF-8 becomes U+FFFD
	return b
}

var errNotArray = errors.New("not an array")

// Array renders elements as an array, in order, without added white space between them.
func Array(elements []jsontext.Value) jsontext.Value {
	b := []byte{'['}
	for i, v := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// Elements splits an array into its elements, which share the array's bytes.
func Elements(array jsontext.Value) ([]jsontext.Value, error) {
	s := takeSplitter()
	defer s.release()
	sure := s.splitArray(array, func(value span) {
		s.elements = append(s.elements, array[value.from:value.to])
	})
	if sure {
		return slices.Clone(s.elements), nil
	}
	return decodeElements(array)
}

// Each yields the elements of a well-formed array, which share its bytes. Other values have
// none.
func Each(array jsontext.Value) iter.Seq[jsontext.Value] {
	return func(yield func(jsontext.Value) bool) {
		n, more := 0, true
		sure := Read(array, func(c Cursor) bool {
			return c.Array(func() bool {
				v, ok := c.Skip()
				if !ok {
					return false
				}
				n++
				more = yield(v)
				return more
			})
		})
		if !sure && more {
			decodeEach(array, n, yield)
		}
	}
}

// decodeEach yields the elements of an array after the first n.
func decodeEach(array jsontext.Value, n int, yield func(jsontext.Value) bool) {
	d, err := enter(array, '[', errNotArray)
	for ; err == nil && d.PeekKind() != ']'; n-- {
		var value jsontext.Value
		value, err = d.ReadValue()
		end := int(d.InputOffset())
		if err == nil && n <= 0 && !yield(array[end-len(value):end:end]) {
			return
		}
	}
}

// decodeElements is Elements for arrays that the scanner cannot handle.
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

// enter starts to decode an object or array. other is the error for any other kind of
// value.
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

// leave reads the end of the object or array. The text must end there.
func leave(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return unexpected(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w", errTrailing)
	}
	return nil
}

// unexpected converts io.EOF to io.ErrUnexpectedEOF, because the text ends too early.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Scanned is a member of an object that is scanned. Its bytes are in the object.
type Scanned struct {
	Name          []byte
	Quoted, Value jsontext.Value // Quoted is the name as the object has it
	Offset        int            // of Quoted in the object
}

// Scan calls each with every member of a well-formed object, until each returns false. It keeps
// nothing of a member. sure is false if a decoder must read the object.
func Scan(object jsontext.Value, each func(m Scanned) bool) (sure bool) {
	s := takeSplitter()
	defer s.release()
	s.reset(object)
	s.wellFormed = true
	s.space()
	stopped := false
	return s.object(func(n span) bool {
		from := s.at
		if !s.value() {
			return false
		}
		stopped = !each(Scanned{unescapedName(object[n.from:n.to]), object[n.from-1 : n.to+1], object[from:s.at:s.at], n.from - 1})
		return !stopped
	}) || stopped
}

// NonEmpty renders members as an object. It returns nil for no members.
func NonEmpty(members []Member) jsontext.Value {
	if len(members) == 0 {
		return nil
	}
	return Object(members)
}

// Lookup returns the value of a member of a well-formed object. It reads the object up
// to this member only.
func Lookup(object jsontext.Value, name string) (value jsontext.Value, ok bool, err error) {
	s := takeSplitter()
	defer s.release()
	found, missing := s.find(object, name)
	switch {
	case found != (span{}):
		return object[found.from:found.to:found.to], true, nil
	case missing:
		return nil, false, nil
	}
	members, err := Members(object)
	value, ok = Value(members, name)
	return value, ok, err
}

// find returns the position of a member's value. missing is true if the object is
// well-formed and has no such member.
func (s *scanner) find(object []byte, name string) (found span, missing bool) {
	s.reset(object)
	s.space()
	missing = s.object(func(n span) bool {
		from := s.at
		if !s.value() {
			return false
		}
		if string(unescapedName(object[n.from:n.to])) == name {
			found = span{from, s.at}
			return false
		}
		return true
	}) && s.done()
	return found, missing
}

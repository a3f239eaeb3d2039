package interop

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/scan"
)

// Member is a member of a JSON object.
type Member struct {
	Name  string
	Value jsontext.Value
}

// Members splits an object into its members, in order. Values share the bytes
// of the object. That names are unique is not checked again: Records does.
func Members(object jsontext.Value) ([]Member, error) {
	if object.Kind() != '{' {
		return nil, errors.New("not an object")
	}
	s := takeSplitter()
	defer s.giveBack()
	sure := s.Members(object, func(name, value scan.Span) {
		s.members = append(s.members, Member{s.name(object[name.From:name.To]), object[value.From:value.To]})
	})
	if sure {
		return slices.Clone(s.members), nil
	}
	return decodeMembers(object)
}

// decodeMembers is Members for objects that a scanner is not sure of.
func decodeMembers(object jsontext.Value) ([]Member, error) {
	d, err := enter(object)
	if err != nil {
		return nil, err
	}
	var members []Member
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		text := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		members = append(members, Member{text, object[end-len(value) : end]})
	}
	return members, nil
}

// enter begins to decode an object or an array.
func enter(v jsontext.Value) (*jsontext.Decoder, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true))
	_, err := d.ReadToken()
	return d, err
}

// Object makes an object of members, in order; nil if there are none.
func Object(members []Member) jsontext.Value {
	if len(members) == 0 {
		return nil
	}
	size := 2
	for i := range members {
		size += len(members[i].Name) + len(members[i].Value) + len(`"":,`)
	}
	b := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = jsontext.AppendQuote(b, m.Name) // names that were read are valid
		b = append(append(b, ':'), m.Value...)
	}
	return append(b, '}')
}

// Elements splits an array into its elements, which share its bytes.
func Elements(array jsontext.Value) ([]jsontext.Value, error) {
	if array.Kind() != '[' {
		return nil, errors.New("not an array")
	}
	s := takeSplitter()
	defer s.giveBack()
	sure := s.Elements(array, func(value scan.Span) {
		s.elements = append(s.elements, array[value.From:value.To])
	})
	if sure {
		return slices.Clone(s.elements), nil
	}
	return decodeElements(array)
}

// decodeElements is Elements for arrays that a scanner is not sure of.
func decodeElements(array jsontext.Value) ([]jsontext.Value, error) {
	d, err := enter(array)
	if err != nil {
		return nil, err
	}
	var elements []jsontext.Value
	for d.PeekKind() != ']' {
		value, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(d.InputOffset())
		elements = append(elements, array[end-len(value):end])
	}
	return elements, nil
}

// Text is the string that a value is; ok is false when it is something else.
func Text(v jsontext.Value) (text string, ok bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s := takeSplitter()
	defer s.giveBack()
	if text, sure := s.Unquote(v); sure {
		return text, true
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// Time is the first of texts that is a time as RFC 3339 writes it; zero if none
// is.
func Time(texts ...string) time.Time {
	for _, text := range texts {
		if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

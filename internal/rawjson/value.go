package rawjson

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

func newDecoder(v []byte, opts ...jsontext.Options) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(v), opts...)
}

// Compact copies a value without white space outside strings; every literal
// keeps its bytes. An error means that v is not one well-formed value with unique
// names.
func Compact(v jsontext.Value) (jsontext.Value, error) {
	if IsCompact(v) {
		return v.Clone(), nil
	}
	return jsontext.AppendFormat(nil, v, jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false))
}

// IsCompact reports whether v is certainly well-formed and compact. False is no
// proof of the opposite.
func IsCompact(v jsontext.Value) bool {
	s := takeSplitter()
	defer s.release()
	s.Spaces = false
	defer func() { s.Spaces = true }()
	return s.Sound(v)
}

// Text is the string that a value stands for; ok is false for any other kind.
func Text(v jsontext.Value) (text string, ok bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s := takeSplitter()
	defer s.release()
	if text, sure := s.Unquote(v); sure {
		return text, true
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// First is the object or array at the start of b. With lax, its text may be
// invalid Unicode.
func First(b []byte, lax bool) (jsontext.Value, error) {
	s := takeSplitter()
	defer s.release()
	if value, sure := s.First(b); sure {
		return value, nil
	}
	return newDecoder(b, jsontext.AllowInvalidUTF8(lax)).ReadValue()
}

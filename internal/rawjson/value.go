package rawjson

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func newDecoder(v []byte, opts ...jsontext.Options) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(v), opts...)
}

// Compact returns a copy of v without white space outside strings. Numbers and strings
// keep their bytes. The error reports a text that is not one well-formed value with
// unique names.
func Compact(v jsontext.Value) (jsontext.Value, error) {
	if IsCompact(v) {
		return v.Clone(), nil
	}
	return jsontext.AppendFormat(nil, v, jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false))
}

// IsCompact reports whether v is known to be well-formed and compact. It may return
// false for some compact values.
func IsCompact(v jsontext.Value) bool {
	return ReadCompact(v, func(c Cursor) bool { return c.value() })
}

// WellFormed reports whether v is known to be well-formed, with unique names. It may return false
// for some well-formed values.
func WellFormed(v jsontext.Value) bool {
	return Read(v, func(c Cursor) bool { return c.value() })
}

// longText is the length from which a text is scanned for repeated names, because a decoder
// needs a map of the names of each object.
const longText = 1 << 20

// Unmarshal is json.Unmarshal with less memory for objects of many members.
func Unmarshal(text []byte, v any, opts ...json.Options) error {
	if len(text) > longText && WellFormed(text) {
		opts = append(slices.Clip(opts), jsontext.AllowDuplicateNames(true)) // there are none
	}
	return json.Unmarshal(text, v, opts...)
}

// Marshal is json.Marshal with less memory for objects of many members.
func Marshal(v any, opts ...json.Options) ([]byte, error) {
	text, err := json.Marshal(v, append(slices.Clip(opts), jsontext.AllowDuplicateNames(true))...)
	if err == nil && IsCompact(text) {
		return text, nil
	}
	return json.Marshal(v, opts...)
}

// Text returns the text of a JSON string. ok is false for any other value.
func Text(v jsontext.Value) (text string, ok bool) {
	if v.Kind() != '"' {
		return "", false
	}
	s := takeSplitter()
	defer s.release()
	if text, sure := s.unquote(v); sure {
		return text, true
	}
	b, err := jsontext.AppendUnquote(nil, v)
	return string(b), err == nil
}

// Begins reports whether b is known to begin with a well-formed object or array with unique names.
// It may return false for some well-formed values.
func Begins(b []byte) bool {
	s := takeSplitter()
	defer s.release()
	_, sure := s.first(b)
	return sure
}

// First returns the object or array at the start of b. With lax, the value may have
// invalid UTF-8.
func First(b []byte, lax bool) (jsontext.Value, error) {
	s := takeSplitter()
	defer s.release()
	if value, sure := s.first(b); sure {
		return value, nil
	}
	return newDecoder(b, jsontext.AllowInvalidUTF8(lax)).ReadValue()
}

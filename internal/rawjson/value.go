package rawjson

import (
	"bytes"

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

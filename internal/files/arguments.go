package files

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Arguments are the arguments of a call, or another JSON object.
type Arguments struct {
	members []rawjson.Member
	text    string // arguments that are a string
}

// ArgumentsOf splits an object. Any other value has no members.
func ArgumentsOf(v jsontext.Value) (a Arguments) {
	if text, ok := rawjson.Text(v); ok {
		return Arguments{text: text}
	}
	a.members, _ = rawjson.Members(v)
	return a
}

// value returns the first of the named members.
func (a *Arguments) value(names string) jsontext.Value {
	for name := range strings.FieldsSeq(names) {
		if v, ok := rawjson.Value(a.members, name); ok && v.Kind() != 'n' {
			return v
		}
	}
	return nil
}

// Text returns the first of the named members as a text; ok is false if it is none.
func (a *Arguments) Text(names string) (text string, ok bool) {
	return rawjson.Text(a.value(names))
}

// Object returns the first of the named members as an object.
func (a *Arguments) Object(names string) Arguments { return ArgumentsOf(a.value(names)) }

// Has reports whether one of the members is there.
func (a *Arguments) Has(names string) bool { return a.value(names) != nil }

// Number returns the first of the named members as a number; 0 if it is none.
func (a *Arguments) Number(names string) int {
	var n float64
	if v := a.value(names); v.Kind() == '0' {
		_ = json.Unmarshal(v, &n) // a number is valid
	}
	return int(n)
}

// flag returns the first of the named members as a boolean.
func (a *Arguments) flag(names string) bool {
	text, _ := a.Text(names)
	return a.True(names) || strings.EqualFold(text, "true") || a.Number(names) > 1
}

// Texts returns the first of the named members as texts: a text, or a list of texts.
func (a *Arguments) Texts(names string) (all []string) {
	v := a.value(names)
	if text, ok := rawjson.Text(v); ok {
		return []string{text}
	}
	elements, err := rawjson.Elements(v)
	if err != nil {
		return nil
	}
	for _, e := range elements {
		if text, ok := rawjson.Text(e); ok {
			all = append(all, text)
		}
	}
	return all
}

// Objects returns the first of the named members as a list of objects. A program may write
// the list as a text.
func (a *Arguments) Objects(names string) (all []Arguments) {
	v := a.value(names)
	if text, ok := rawjson.Text(v); ok {
		v = jsontext.Value(text)
	}
	elements, err := rawjson.Elements(v)
	if err != nil {
		return nil
	}
	for _, e := range elements {
		all = append(all, ArgumentsOf(e))
	}
	return all
}

// True and False report whether the first of the named members is that boolean.
func (a *Arguments) True(names string) bool  { return a.value(names).Kind() == 't' }
func (a *Arguments) False(names string) bool { return a.value(names).Kind() == 'f' }

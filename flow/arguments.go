package flow

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// argumentsError reports that the arguments of a call do not fit the schema of the tool,
// or are not JSON. Its text is for the model, which can call again.
type argumentsError struct {
	Tool string
	// Problems are sentences with the paths of the wrong members, up to 8.
	Problems []string
}

func (e *argumentsError) Error() string {
	return fmt.Sprintf("the arguments do not fit the tool %q, which has not run: %s. Call it again with other arguments.",
		e.Tool, strings.Join(e.Problems, "; "))
}

// RetryAfter is 0.
func (e *argumentsError) RetryAfter() time.Duration { return 0 }

// Permanent is true: the same arguments never fit.
func (e *argumentsError) Permanent() bool { return true }

const (
	maxProblems = 8
	maxShown    = 80 // bytes of a value or of a message in a problem
)

// decodeArguments checks the arguments of a call and decodes them into in, a pointer.
func decodeArguments(tool string, f *form, raw jsontext.Value, in any) error {
	if len(raw) == 0 {
		raw = jsontext.Value(`{}`)
	}
	var text string
	if raw.Kind() == '"' && json.Unmarshal(raw, &text) == nil {
		raw = jsontext.Value(text) // arguments that were no JSON when they came
	}
	if problems := f.decode(raw, in); len(problems) > 0 {
		return &argumentsError{Tool: tool, Problems: problems}
	}
	return nil
}

// decode checks a value and decodes it into in, a pointer. It returns the problems of a value that does not fit.
func (f *form) decode(raw jsontext.Value, in any) (problems []string) {
	var v any
	if err := json.Unmarshal(raw, &v, numbers); err != nil {
		return []string{"not valid JSON: " + show(err.Error())}
	}
	c := checker{root: f.root}
	if c.check("", f.resolved.Schema(), v); len(c.problems) > 0 {
		return c.problems
	}
	if err := f.resolved.Validate(plain(v)); err != nil {
		return []string{inWords(err)}
	}
	if err := json.Unmarshal(raw, in, numbers); err != nil {
		return []string{decodeProblem(err)}
	}
	return nil
}

// checker finds the usual problems. The validator of the schema finds all others, in its
// own words.
type checker struct {
	root     string
	problems []string
}

func (c *checker) add(path, format string, args ...any) {
	path = cmp.Or(path, c.root)
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, path+": "+fmt.Sprintf(format, args...))
	}
}

func (c *checker) check(path string, s *jsonschema.Schema, v any) {
	if want := typesOf(s); len(want) > 0 && !fits(kindOf(v), want) {
		c.add(path, "expected %s, got %s", strings.Join(want, " or "), describe(v))
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return jsonschema.Equal(e, plain(v)) }) {
		c.add(path, "expected one of %s, got %s", show(list(s.Enum)), describe(v))
		return
	}
	switch v := v.(type) {
	case stdjson.Number:
		c.checkLimits(path, s, v)
	case map[string]any:
		c.checkObject(path, s, v)
	case []any:
		for i := 0; i < len(v) && s.Items != nil && len(c.problems) < maxProblems; i++ {
			c.check(fmt.Sprintf("%s[%d]", path, i), s.Items, v[i])
		}
	}
}

func (c *checker) checkLimits(path string, s *jsonschema.Schema, v stdjson.Number) {
	f, _ := v.Float64() // infinite if it is too large
	if s.Minimum != nil && f < *s.Minimum {
		c.add(path, "expected at least %v, got %s", *s.Minimum, describe(v))
	}
	if s.Maximum != nil && f > *s.Maximum {
		c.add(path, "expected at most %v, got %s", *s.Maximum, describe(v))
	}
}

func (c *checker) checkObject(path string, s *jsonschema.Schema, v map[string]any) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			c.add(within(path, name), "missing, expected %s", typesText(s.Properties[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if len(c.problems) == maxProblems {
			return
		}
		switch p := s.Properties[name]; {
		case p != nil:
			c.check(within(path, name), p, v[name])
		case s.AdditionalProperties == nil || s.PatternProperties != nil:
		case refusesAll(s.AdditionalProperties):
			c.add(within(path, name), "unknown member, expected %s", show(strings.Join(slices.Sorted(maps.Keys(s.Properties)), ", ")))
		default:
			c.check(within(path, name), s.AdditionalProperties, v[name])
		}
	}
}

func within(path, name string) string {
	if name = show(name); path == "" {
		return name
	}
	return path + "." + name
}

// refusesAll reports whether a schema is false.
func refusesAll(s *jsonschema.Schema) bool { return s.Not != nil && reflect.ValueOf(*s.Not).IsZero() }

func typesOf(s *jsonschema.Schema) []string {
	if s == nil || s.Type == "" && s.Types == nil {
		return nil
	}
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func typesText(s *jsonschema.Schema) string {
	if want := typesOf(s); len(want) > 0 {
		return strings.Join(want, " or ")
	}
	return "any value"
}

func fits(kind string, want []string) bool {
	return slices.Contains(want, kind) || kind == "integer" && slices.Contains(want, "number")
}

// kindOf is the type of a value. An integer has no fraction and no exponent.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case stdjson.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// describe is the type of a value, with the value if it is short to say.
func describe(v any) string {
	kind := kindOf(v)
	switch v := v.(type) {
	case string:
		return kind + " " + show(fmt.Sprintf("%q", v))
	case stdjson.Number:
		return kind + " " + show(string(v))
	}
	return kind
}

func list(values []any) string {
	all := make([]string, len(values))
	for i, v := range values {
		raw, _ := json.Marshal(v) // from JSON
		all[i] = string(raw)
	}
	return strings.Join(all, ", ")
}

// show shortens a text.
func show(text string) string {
	if len(text) <= maxShown {
		return text
	}
	n := maxShown
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// plain replaces numbers by the types of Go, as the validator wants them.
func plain(v any) any {
	switch v := v.(type) {
	case stdjson.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // the largest number if it is too large
		return max(-math.MaxFloat64, min(f, math.MaxFloat64))
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name := range v {
			all[name] = plain(v[name])
		}
		return all
	}
	return v
}

// inWords makes a problem of an error of the validator: "validating PLACE: " for each
// level of the schema, and the problem.
func inWords(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, "validating "); i >= 0 {
		text = text[i+len("validating "):]
	}
	place, problem, _ := strings.Cut(text, ": ")
	place = strings.ReplaceAll(strings.ReplaceAll(place, "/properties/", "."), "/items", "[]")
	return show(strings.TrimPrefix(place, ".")) + ": " + show(problem)
}

// decodeProblem makes a problem of a value that does not fit its Go type, for example an
// integer over 64 bits.
func decodeProblem(err error) string {
	var e *json.SemanticError
	if !errors.As(err, &e) {
		return show(err.Error())
	}
	path := show(strings.ReplaceAll(strings.TrimPrefix(string(e.JSONPointer), "/"), "/", "."))
	cause := "does not fit"
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if e.JSONValue != nil {
		path += ": " + show(string(e.JSONValue))
	}
	return path + ": " + show(cause)
}

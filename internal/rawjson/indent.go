package rawjson

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// indentedLevels is how deep JSON may be nested to be indented. The white space of
// what is nested more deeply may outweigh it a thousand times.
const indentedLevels = 100

const indentation = "  "

// Indent puts each member and item of v on a line of its own, unless it is nested
// too deeply for anybody to read it: then it stays as it is.
func Indent(v jsontext.Value) (jsontext.Value, error) {
	var levels nesting
	if _, err := levels.Write(v); err != nil || levels.deepest > indentedLevels {
		return v, err
	}
	v = v.Clone()
	err := v.Indent(jsontext.WithIndent(indentation))
	return v, err
}

// WriteIndented writes a value, encoded as JSON and indented as Indent does.
func WriteIndented(w io.Writer, v any) error {
	var levels nesting
	opts := []jsontext.Options{json.Deterministic(true), jsontext.PreserveRawStrings(true)}
	if err := json.MarshalWrite(&levels, v, opts...); err != nil {
		return err
	}
	if levels.deepest <= indentedLevels {
		opts = append(opts, jsontext.WithIndent(indentation))
	}
	if err := json.MarshalWrite(w, v, opts...); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// nesting is a Writer that measures how deep the JSON is nested that it is given.
type nesting struct {
	level, deepest   int
	quoted, escaping bool
}

func (n *nesting) Write(text []byte) (int, error) {
	for _, c := range text {
		switch {
		case n.escaping:
			n.escaping = false
		case n.quoted && c == '\\':
			n.escaping = true
		case c == '"':
			n.quoted = !n.quoted
		case n.quoted:
		case c == '{' || c == '[':
			n.level++
			n.deepest = max(n.deepest, n.level)
		case c == '}' || c == ']':
			n.level--
		}
	}
	return len(text), nil
}

package rawjson

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxIndentDepth is the largest depth of indented JSON. White space could make deeper
// JSON a thousand times larger.
const maxIndentDepth = 100

const indentation = "  "

// Indent puts each member and element of v on a line of its own. It returns v
// unchanged if v is nested in more than 100 levels.
func Indent(v jsontext.Value) (jsontext.Value, error) {
	var levels depthWriter
	if _, err := levels.Write(v); err != nil || levels.max > maxIndentDepth {
		return v, err
	}
	v = v.Clone()
	err := v.Indent(jsontext.WithIndent(indentation))
	return v, err
}

// WriteIndented writes v as JSON, indented like Indent, and a newline.
func WriteIndented(w io.Writer, v any) error {
	var levels depthWriter
	opts := []jsontext.Options{json.Deterministic(true), jsontext.PreserveRawStrings(true)}
	if err := json.MarshalWrite(&levels, v, opts...); err != nil {
		return err
	}
	if levels.max <= maxIndentDepth {
		opts = append(opts, jsontext.WithIndent(indentation))
	}
	if err := json.MarshalWrite(w, v, opts...); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// depthWriter is an io.Writer that measures the depth of the JSON it receives.
type depthWriter struct {
	level, max       int
	quoted, escaping bool
}

func (n *depthWriter) Write(text []byte) (int, error) {
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
			n.max = max(n.max, n.level)
		case c == '}' || c == ']':
			n.level--
		}
	}
	return len(text), nil
}

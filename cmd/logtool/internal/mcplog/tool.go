package mcplog

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Tool is a tool of the server: a command that prints a JSON value on each line.
type Tool struct {
	Name, Description string
	Params            []Param
	// Key are the members that identify a row among rows that may move. Without a Key, a row is
	// identified by its number, and rows do not move.
	Key []string
	// Begin is the parameter that makes the command begin at a row, by its member seq. Without
	// one, the command prints all rows before the cursor again.
	Begin string
	// Run runs the command. It prints rows on out, and hints for people on notes. An error
	// of out ends the command.
	Run func(ctx context.Context, args Args, out, notes io.Writer) error
}

// Param is a parameter of a tool.
type Param struct {
	Name, Description string
	Kind              Kind
	Required          bool
}

// Kind is the JSON type of a parameter.
type Kind string

// The kinds of parameters.
const (
	Text   Kind = "string"
	Number Kind = "integer"
	Truth  Kind = "boolean"
	Texts  Kind = "array" // of texts
)

// Args are the arguments of a call: the values of each parameter that the client gave.
type Args map[string][]string

// The parameters of every tool.
const (
	cursorParam = "cursor"
	budgetParam = "max_tokens"
	fullParam   = "full"
)

// common are the parameters of every tool.
var common = []Param{
	{Name: cursorParam, Kind: Text, Description: "go on: next of the answer before, with the same parameters"},
	{Name: budgetParam, Kind: Number, Description: fmt.Sprintf("budget of the answer in tokens, %d to %d; default %d", leastBudget, mostBudget, usualBudget)},
	{Name: fullParam, Kind: Truth, Description: fmt.Sprintf("whole texts; otherwise a text is cut after %d characters", clipAfter)},
}

// params are all parameters of the tool.
func (t *Tool) params() []Param { return append(slices.Clone(t.Params), common...) }

// schema is the JSON Schema of the parameters. Some clients know single types only.
func (t *Tool) schema() map[string]any {
	properties := map[string]any{}
	required := []string{}
	for _, p := range t.params() {
		property := map[string]any{"type": string(p.Kind), "description": p.Description}
		if p.Kind == Texts {
			property["items"] = map[string]any{"type": string(Text)}
		}
		properties[p.Name] = property
		if p.Required {
			required = append(required, p.Name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// parse parses the arguments of a call. Models mix up numbers, texts and truth values, so each
// kind is accepted in the form of a text.
func (t *Tool) parse(raw jsontext.Value) (Args, error) {
	given := map[string]jsontext.Value{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("the arguments of %s are no JSON object: %w", t.Name, err)
		}
	}
	args := Args{}
	for _, p := range t.params() {
		value, ok := given[p.Name]
		delete(given, p.Name)
		if !ok || string(value) == "null" {
			continue
		}
		values, err := p.parse(value)
		if err != nil {
			return nil, err
		}
		args[p.Name] = values
	}
	if len(given) > 0 {
		names := slices.Sorted(maps.Keys(given))
		return nil, fmt.Errorf("%s has no parameter %q; it has %s", t.Name, names[0], strings.Join(t.names(), ", "))
	}
	for _, p := range t.Params {
		if p.Required && strings.Join(args[p.Name], "") == "" {
			return nil, fmt.Errorf("%s needs the parameter %s: %s", t.Name, p.Name, p.Description)
		}
	}
	return args, nil
}

func (t *Tool) names() (names []string) {
	for _, p := range t.params() {
		names = append(names, p.Name)
	}
	return names
}

// parse returns the values of an argument as texts.
func (p *Param) parse(raw jsontext.Value) ([]string, error) {
	if p.Kind == Texts && raw[0] == '[' {
		var texts []string
		if err := json.Unmarshal(raw, &texts); err != nil {
			return nil, p.wrong(raw)
		}
		return texts, nil
	}
	text := string(raw)
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, p.wrong(raw)
		}
	}
	ok := raw[0] != '{' && raw[0] != '['
	switch p.Kind {
	case Number:
		_, err := strconv.Atoi(text)
		ok = err == nil
	case Truth:
		_, err := strconv.ParseBool(text)
		ok = err == nil
	}
	if !ok {
		return nil, p.wrong(raw)
	}
	return []string{text}, nil
}

func (p *Param) wrong(raw jsontext.Value) error {
	text := string(raw)
	if len(text) > 40 {
		text = strings.ToValidUTF8(text[:40], "") + "…"
	}
	return fmt.Errorf("the parameter %s is of type %s, not %s", p.Name, p.Kind, text)
}

// one is the only value of a parameter; empty without it.
func (a Args) one(name string) string { return strings.Join(a[name], "") }

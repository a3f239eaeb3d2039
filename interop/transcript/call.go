package transcript

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Argument is a member of a call's arguments: strings as their text, others as
// JSON.
type Argument struct{ Name, Text string }

// Label is what stands before the text.
func (a *Argument) Label() string {
	if a.Name == "" {
		return ""
	}
	return a.Name + ": "
}

// Arguments are those of a call, in order; a value that is no object is one
// without a name.
func Arguments(v jsontext.Value) (all []Argument) {
	members, err := rawjson.Members(v)
	if err != nil {
		if len(v) == 0 {
			return nil
		}
		return []Argument{{Text: plain(v)}}
	}
	for _, m := range members {
		all = append(all, Argument{m.Name, plain(m.Value)})
	}
	return all
}

func plain(v jsontext.Value) string {
	if text, ok := rawjson.Text(v); ok {
		return text
	}
	return string(v)
}

// OneLine writes arguments on one line; it is empty where that would be long.
func OneLine(arguments []Argument) string {
	const most = 100
	var all []string
	for _, a := range arguments {
		all = append(all, a.Label()+a.Text)
	}
	line := strings.Join(all, ", ")
	if len(line) > 4*most || utf8.RuneCountInString(line) > most || strings.ContainsAny(line, "\n\r") {
		return ""
	}
	return line
}

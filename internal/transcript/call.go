package transcript

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Argument is a member of a call's arguments. Text is the value of a string, and the
// JSON of any other value.
type Argument struct{ Name, Text string }

// Label returns the name with a colon, to print before the text; empty if there is no
// name.
func (a *Argument) Label() string {
	if a.Name == "" {
		return ""
	}
	return a.Name + ": "
}

// Arguments returns the arguments of a call, in order. Arguments that are not an
// object become one Argument without a name.
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

// OneLine joins arguments on one line. It returns "" if the line would be long or if a
// text has several lines.
func OneLine(arguments []Argument) string {
	const most = 100
	var all []string
	length := 0
	for _, a := range arguments {
		word := a.Label() + a.Text
		if length += utf8.RuneCountInString(word); length > most || strings.ContainsAny(word, "\n\r") {
			return ""
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

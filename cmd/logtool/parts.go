package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/transcript"
)

// part prints one part of a message; results are those of the message's calls.
func (r *renderer) part(p *event.Part, results map[string]transcript.Result, in string) {
	switch p.Type {
	case event.TextPart:
		r.block(p.Text, in, r.most, "")
	case event.ReasoningPart:
		r.reasoning(p, in)
	case event.ToolCallPart, event.ServerToolCallPart:
		r.call(p, in)
		if answer, ok := results[p.CallID]; ok && p.Type == event.ToolCallPart {
			from := "not recorded" // what the model is told of a call that gave nothing
			if answer.Seq > 0 {
				from = at(answer.Seq)
			}
			r.result(&answer.Part, from, in+indent)
		}
	case event.ToolResultPart, event.ServerToolResultPart:
		r.result(p, "of "+clean(strings.TrimSpace(p.Name+" "+p.CallID)), in)
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		r.printf("%s%s\n", in, r.paint(dim, body(p)))
	default:
		r.printf("%s%s\n", in, r.paint(dim, "["+clean(string(p.Type)+" "+p.Kind)+"] "+brief(string(p.Value)+string(p.Raw), 100)))
	}
}

func (r *renderer) reasoning(p *event.Part, in string) {
	if strings.TrimSpace(p.Text) == "" {
		r.printf("%s%s\n", in, r.paint(dim, "(reasoning withheld)"))
		return
	}
	r.printf("%s%s\n", in, r.paint(dim, "(reasoning)"))
	r.block(p.Text, in, foldReasoning, dim)
}

// body says what an image, sound or document is.
func body(p *event.Part) string {
	text := "[" + string(p.Type)
	for _, word := range []string{p.Name, p.MediaType, p.URL} {
		if word != "" {
			text += " " + brief(word, 80)
		}
	}
	switch {
	case !p.Blob.IsZero():
		text += fmt.Sprintf(" %s %s", size(p.Blob.Bytes), p.Blob.Blob)
	case len(p.Data) > 0:
		text += " " + size(int64(len(p.Data)))
	}
	return text + "]"
}

// call prints a tool call: arguments on its line if they are short, else
// below.
func (r *renderer) call(p *event.Part, in string) {
	arguments := transcript.Arguments(p.Arguments)
	line := oneLine(arguments)
	r.printf("%s%s %s%s\n", in, r.paint(cyan, "→"), r.paint(bold, clean(p.Name)), line)
	if line != "" || len(arguments) == 0 {
		return
	}
	for _, a := range arguments {
		if !strings.Contains(a.Text, "\n") {
			r.block(a.Label()+a.Text, in+indent, foldArgument, "")
			continue
		}
		r.block(strings.TrimSuffix(a.Label(), " "), in+indent, foldArgument, "")
		r.block(a.Text, in+indent+indent, foldArgument, "")
	}
}

// oneLine is " (name: text, …)", or empty where that would be long.
func oneLine(arguments []transcript.Argument) string {
	const most = 100
	var words []string
	long := 0
	for _, a := range arguments {
		word := a.Label() + a.Text
		if long += utf8.RuneCountInString(word); long > most || strings.Contains(word, "\n") {
			return ""
		}
		words = append(words, clean(word))
	}
	if len(words) == 0 {
		return " ()"
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// result prints the result of a call.
func (r *renderer) result(p *event.Part, from, in string) {
	mark := "←"
	switch {
	case p.Interrupted:
		mark = "← interrupted"
	case p.IsError:
		mark = "← error"
	}
	s := cyan
	if p.IsError {
		s = red
	}
	r.printf("%s%s %s\n", in, r.paint(s, mark), r.paint(dim, from))
	for i := range p.Content {
		if c := &p.Content[i]; c.Type == event.TextPart {
			r.block(c.Text, in+indent, foldResult, "")
		} else {
			r.part(c, nil, in+indent)
		}
	}
}

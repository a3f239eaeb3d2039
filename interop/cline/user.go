package cline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// openCall is a call without a result.
type openCall struct{ id, name string }

// said are the pieces of a message of the user, in order: results come first, as every
// API demands.
type said struct {
	reader  *parts.Reader
	open    *[]openCall
	results []event.Part
	rest    []event.Payload
	// inResult says that the newest piece is a result, which further content belongs to.
	inResult bool
}

// blocksOf splits the content of a message into blocks; a text is one block.
func blocksOf(content jsontext.Value) ([]jsontext.Value, error) {
	if content.Kind() == '"' {
		return []jsontext.Value{rawjson.NonEmpty([]rawjson.Member{{Name: "type", Value: jsontext.Value(`"text"`)}, {Name: "text", Value: content}})}, nil
	}
	return rawjson.Elements(content)
}

// payloads are the payloads of a message of the user: the results, then words and
// contexts.
func (s *said) payloads(blocks []jsontext.Value) ([]event.Payload, error) {
	for _, v := range blocks {
		p, err := s.reader.Block(v)
		if err != nil {
			return nil, err
		}
		s.add(p)
	}
	var all []event.Payload
	if len(s.results) > 0 {
		all = append(all, event.Message{Role: event.Tool, Parts: s.results})
	}
	return append(all, s.rest...), nil
}

// add adds a block.
func (s *said) add(p event.Part) {
	switch {
	case p.Type == event.ToolResultPart:
		if p.Name == commandTool && len(p.Content) > 0 && isFailure(p.Content[0].Text) {
			p.IsError = true
		}
		s.close(p.CallID)
		s.results = append(s.results, p)
		s.inResult = false
		return
	case p.Type != event.TextPart:
		s.addContent(p)
		return
	}
	switch speakerOf(p.Text) {
	case scene:
		s.addContext("environment", p)
	case program:
		s.addContext("reminder", p)
	case tool:
		s.addResult(p)
	case person:
		s.addWords(p)
	default:
		s.addContent(p)
	}
}

// addContent adds a block without a mark to the newest result or to the person's words.
func (s *said) addContent(p event.Part) {
	if !s.inResult {
		s.addWords(p)
		return
	}
	last := &s.results[len(s.results)-1]
	last.Content = append(last.Content, p)
}

// addWords adds a block of a person.
func (s *said) addWords(p event.Part) {
	s.inResult = false
	if n := len(s.rest); n > 0 {
		if m, ok := s.rest[n-1].(event.Message); ok {
			m.Parts = append(m.Parts, p)
			s.rest[n-1] = m
			return
		}
	}
	s.rest = append(s.rest, event.Message{Role: event.User, Parts: []event.Part{p}})
}

func (s *said) addContext(kind string, p event.Part) {
	s.inResult = false
	s.rest = append(s.rest, event.ContextEntry{Kind: kind, Placement: event.InHistory, Parts: []event.Part{p}})
}

// addResult adds a result in a text. Without an open call it is a context.
func (s *said) addResult(p event.Part) {
	text := strings.TrimLeft(p.Text, " \t\r\n")
	heading, name, content := "", firstGroup(notRun, text), text
	if found := resultHead.FindStringSubmatchIndex(text); found != nil {
		heading, name, content = text[:found[1]], text[found[2]:found[3]], text[found[1]:]
	}
	call, ok := s.take(name)
	if !ok {
		s.addContext("result", p)
		return
	}
	result := event.ToolResult(call.id, call.name)
	if content != "" {
		result.Content = []event.Part{event.Text(content)}
	}
	result.IsError = heading == "" || strings.HasPrefix(content, "The tool execution failed") || call.name == commandTool && isFailure(content)
	extra, err := parts.Open(p.Extra)
	if err != nil {
		extra = parts.Members{}
	}
	if heading != "" {
		v, _ := json.Marshal(heading)
		extra.Put("heading", v)
	}
	result.Extra = extra.Rest()
	s.results = append(s.results, result)
	s.inResult = true
}

// take takes the first open call of a tool, or else the first one: some results have
// another name than their call.
func (s *said) take(name string) (call openCall, ok bool) {
	if len(*s.open) == 0 {
		return call, false
	}
	i := max(0, slices.IndexFunc(*s.open, func(c openCall) bool { return c.name == name }))
	call = (*s.open)[i]
	*s.open = slices.Delete(*s.open, i, i+1)
	return call, true
}

// close closes the call with an id.
func (s *said) close(id string) {
	*s.open = slices.DeleteFunc(*s.open, func(c openCall) bool { return c.id == id })
}

// commandTool is the tool that runs a command.
const commandTool = "execute_command"

// exitCode matches the exit code of a command in its result.
var exitCode = regexp.MustCompile(`(?i)\bexit code:? (-?\d+)`)

// isFailure reports whether the result of a command begins with the exit code of a failure,
// before the output of the command.
func isFailure(text string) bool {
	head, _, _ := strings.Cut(text, "\nOutput:")
	if before, _, ok := strings.Cut(head, "\n\n"); ok {
		head = before
	}
	found := exitCode.FindStringSubmatch(head)
	return found != nil && found[1] != "0" && strings.HasPrefix(strings.TrimSpace(head), "Command ")
}

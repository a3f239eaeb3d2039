package pi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/interop/internal/writing"
)

// shortID is the length of the id of an entry.
const shortID = 8

type writtenHeader struct {
	Type      string `json:"type"`
	Version   int    `json:"version"`
	ID        string `json:"id"`
	Timestamp string `json:"timestamp"`
	CWD       string `json:"cwd"`
}

type writtenEntry struct {
	Type      string  `json:"type"`
	ID        string  `json:"id"`
	ParentID  *string `json:"parentId"`
	Timestamp string  `json:"timestamp"`
	Message   any     `json:"message"`
}

type writtenUser struct {
	Role      string `json:"role"`
	Content   []any  `json:"content"`
	Timestamp int64  `json:"timestamp"`
}

type writtenAnswer struct {
	Role       string       `json:"role"`
	Content    []any        `json:"content"`
	API        string       `json:"api"`
	Provider   string       `json:"provider"`
	Model      string       `json:"model"`
	Usage      writtenUsage `json:"usage"` // pi crashes without it
	StopReason string       `json:"stopReason"`
	Timestamp  int64        `json:"timestamp"`
}

// writtenUsage is zero: the tokens count where the answer was given.
type writtenUsage struct {
	Input       int64       `json:"input"`
	Output      int64       `json:"output"`
	CacheRead   int64       `json:"cacheRead"`
	CacheWrite  int64       `json:"cacheWrite"`
	TotalTokens int64       `json:"totalTokens"`
	Cost        writtenCost `json:"cost"`
}

type writtenCost struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Total      float64 `json:"total"`
}

type writtenResult struct {
	Role       string `json:"role"`
	ToolCallID string `json:"toolCallId"`
	ToolName   string `json:"toolName"`
	Content    []any  `json:"content"`
	IsError    bool   `json:"isError"`
	Timestamp  int64  `json:"timestamp"`
}

// The parts of a message.
type (
	writtenText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	writtenThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"thinkingSignature"`
	}
	writtenImage struct {
		Type     string `json:"type"`
		Data     string `json:"data"`
		MIMEType string `json:"mimeType"`
	}
	writtenCall struct {
		Type      string         `json:"type"`
		ID        string         `json:"id"`
		Name      string         `json:"name"`
		Arguments jsontext.Value `json:"arguments"`
	}
)

// Write writes the messages as entries of a session. Thinking stays if it has the signature
// of the model of the newest answer: pi drops the signed thinking of other models.
func (Format) Write(c interop.Conversation) (interop.Written, error) {
	provider, model := writing.LastModel(c.History)
	said, losses := writing.Messages(c, writing.Rules{
		Reasoning: func(m *event.Message, p *event.Part) bool {
			return c.Format == formatName && m.Provider == provider && m.Model == model && p.Signature != ""
		},
		Program: formatName, ErrorMarks: true,
	})
	at := c.At.UTC()
	w := interop.Written{
		Losses: losses, Command: []string{"pi", "--session", c.ID},
		Path: fileName(c.CWD, c.ID, at),
	}
	var lines writing.Lines
	lines.Add(writtenHeader{"session", 3, c.ID, writing.Stamp(at), c.CWD})
	header, err := lines.Bytes()
	if err != nil {
		return w, err
	}
	w.Header = int64(len(header))
	ids := written.NewIDs(c.ID)
	var parent *string
	for i := range said {
		messages, err := messagesOf(&said[i], c)
		if err != nil {
			return w, err
		}
		for _, m := range messages {
			id := ids.Next(said[i].Seq)[:shortID]
			lines.Add(writtenEntry{"message", id, parent, writing.Stamp(said[i].At), m})
			parent = &id
		}
	}
	w.Seqs = ids.Seqs
	w.Body, err = lines.Bytes()
	return w, err
}

// messagesOf renders a message: its results one by one, then the rest.
func messagesOf(s *writing.Said, c interop.Conversation) (all []any, err error) {
	at := s.At.UnixMilli()
	var content []any
	for i := range s.Parts {
		p := &s.Parts[i]
		if p.Type != event.ToolResultPart {
			part, err := partOf(p, c)
			if err != nil {
				return nil, err
			}
			if part != nil {
				content = append(content, part)
			}
			continue
		}
		r := writtenResult{Role: "toolResult", ToolCallID: p.CallID, ToolName: p.Name, Content: []any{}, IsError: p.IsError, Timestamp: at}
		for j := range p.Content {
			part, err := partOf(&p.Content[j], c)
			if err != nil {
				return nil, err
			}
			if part != nil {
				r.Content = append(r.Content, part)
			}
		}
		all = append(all, r)
	}
	switch {
	case len(content) == 0:
		return all, nil
	case s.Role == event.Assistant:
		stop := "stop"
		for i := range s.Parts {
			if s.Parts[i].Type == event.ToolCallPart {
				stop = "toolUse"
			}
		}
		return append(all, writtenAnswer{Role: "assistant", Content: content, API: "anthropic-messages", Provider: s.Provider, Model: s.Model, StopReason: stop, Timestamp: at}), nil
	}
	return append(all, writtenUser{"user", content, at}), nil
}

// partOf renders a part; nil for a part without content.
func partOf(p *event.Part, c interop.Conversation) (any, error) {
	switch p.Type {
	case event.ReasoningPart:
		return writtenThinking{"thinking", p.Text, p.Signature}, nil
	case event.ToolCallPart:
		return writtenCall{"toolCall", p.CallID, p.Name, render.Arguments(p.Arguments)}, nil
	case event.ImagePart:
		m, ok, err := render.Load(p, c.Blob)
		if err != nil {
			return nil, err
		}
		if ok && len(m.Data) > 0 {
			return writtenImage{"image", m.Base64(), m.Type}, nil
		}
	}
	if text := render.Words(p); text != "" {
		return writtenText{"text", text}, nil
	}
	return nil, nil
}

package mcptools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/event"
)

// content is the content of a result. A structured result without other content is JSON.
func content(r *mcp.CallToolResult) ([]event.Part, error) {
	if len(r.Content) == 0 && r.StructuredContent != nil {
		return asJSON(r.StructuredContent)
	}
	var parts []event.Part
	for _, c := range r.Content {
		more, err := partOf(c)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

func partOf(c mcp.Content) ([]event.Part, error) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return text(c.Text), nil
	case *mcp.ImageContent:
		return []event.Part{{Type: event.ImagePart, MediaType: c.MIMEType, Data: c.Data}}, nil
	case *mcp.AudioContent:
		return []event.Part{{Type: event.AudioPart, MediaType: c.MIMEType, Data: c.Data}}, nil
	case *mcp.EmbeddedResource:
		if r := c.Resource; r != nil && r.Blob != nil {
			return []event.Part{{Type: event.DocumentPart, MediaType: r.MIMEType, Name: r.URI, Data: r.Blob}}, nil
		} else if r != nil {
			return text(r.Text), nil
		}
	}
	return asJSON(c)
}

func text(s string) []event.Part {
	return []event.Part{event.Text(strings.ToValidUTF8(s, "\uFFFD"))}
}

func asJSON(v any) ([]event.Part, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("the result of the tool: %w", err)
	}
	return text(string(raw)), nil
}

package openai

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/render"
)

// The parts of a user message in Chat Completions.
type (
	textPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	imagePart struct {
		Type  string `json:"type"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	audioPart struct {
		Type  string `json:"type"`
		Audio struct {
			Data   string `json:"data"`
			Format string `json:"format"`
		} `json:"input_audio"`
	}
	filePart struct {
		Type string `json:"type"`
		File struct {
			Name string `json:"filename"`
			Data string `json:"file_data"`
		} `json:"file"`
	}
)

func newText(text string) textPart { return textPart{"text", text} }

// content joins the parts into one text; it returns the parts if one is not a text.
func content(parts []any) any {
	var all *string
	for _, p := range parts {
		t, ok := p.(textPart)
		if !ok {
			return parts
		}
		all = joinText(all, t.Text)
	}
	return all
}

// part renders a text part. With bodies, it renders images, sounds and documents too.
// It returns nil for a part without content.
func (c *chat) part(p *event.Part, bodies bool) (any, error) {
	if bodies {
		if part, err := c.body(p); part != nil || err != nil {
			return part, err
		}
	}
	if text := render.Words(p); text != "" {
		return newText(text), nil
	}
	return nil, nil
}

// body renders an image, a sound or a document; nil if the API does not accept it.
func (c *chat) body(p *event.Part) (any, error) {
	if !render.HasBody(p) {
		return nil, nil
	}
	m, ok, err := render.Load(p, c.options.Blob)
	if !ok || err != nil {
		return nil, err
	}
	switch {
	case p.Type == event.ImagePart && m.IsImage():
		part := imagePart{Type: "image_url"}
		part.Image.URL = m.Address()
		return part, nil
	case p.Type == event.AudioPart && audioFormats[m.Type] != "" && m.URL == "":
		part := audioPart{Type: "input_audio"}
		part.Audio.Data, part.Audio.Format = m.Base64(), audioFormats[m.Type]
		return part, nil
	case p.Type == event.DocumentPart && m.Type == "application/pdf" && m.URL == "":
		part := filePart{Type: "file"}
		part.File.Name, part.File.Data = m.FileName(), m.Address()
		return part, nil
	case p.Type == event.DocumentPart && m.IsText():
		return newText(render.Placeholder(p) + "\n" + string(m.Data)), nil
	}
	return nil, nil
}

// audioFormats are the sound formats of the API, by media type.
var audioFormats = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3",
}

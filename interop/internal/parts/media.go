package parts

import (
	"bytes"
	"context"
	"encoding/base64"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/modelapi"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
	"github.com/convlog/convlog/interop/internal/render"
)

// anthropicMedia parses an image or a document of Anthropic. Base64 becomes a body, a
// URL stays a URL.
func (r *Reader) anthropicMedia(o *Members, name string) (p event.Part, err error) {
	var source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	}
	v := o.Take("source")
	if v == nil || json.Unmarshal(v, &source) != nil {
		return p, nil
	}
	p = event.Part{Type: event.PartType(name), MediaType: source.MediaType, Name: o.Text("title")}
	switch source.Type {
	case "base64":
		body, err := base64.StdEncoding.DecodeString(source.Data)
		if err != nil {
			return event.Part{}, nil
		}
		return r.withBody(p, body)
	case "text":
		return r.withBody(p, []byte(source.Data))
	case "url":
		p.URL = source.URL
		o.Failed = o.Failed || p.URL == ""
		return p, nil
	}
	return event.Part{}, nil
}

// openaiMedia parses an image, a sound or a file of OpenAI.
func (r *Reader) openaiMedia(o *Members, name string) (p event.Part, err error) {
	switch name {
	case "image_url":
		inner, err := Open(o.Peek("image_url"))
		if err != nil {
			return r.linked(event.ImagePart, "", o.Required("image_url"))
		}
		address := inner.Required("url")
		o.replace("image_url", &inner)
		return r.linked(event.ImagePart, "", address)
	case "input_image":
		return r.linked(event.ImagePart, "", o.Required("image_url"))
	case "input_audio":
		return r.sound(o)
	case "file":
		inner, err := Open(o.Peek("file"))
		if err != nil {
			return p, nil
		}
		title, address := inner.Text("filename"), inner.Required("file_data")
		o.replace("file", &inner)
		return r.linked(event.DocumentPart, title, address)
	}
	title := o.Text("filename")
	if o.Has("file_url") {
		return r.linked(event.DocumentPart, title, o.Required("file_url"))
	}
	return r.linked(event.DocumentPart, title, o.Required("file_data"))
}

// replace replaces a member with the remaining members of its object.
func (o *Members) replace(name string, inner *Members) {
	o.Failed = o.Failed || inner.Failed
	o.Take(name)
	if rest := inner.Rest(); rest != nil {
		o.Put(name, rest)
	}
}

// FromURL makes a part of a URL. The body of a data: URL goes to the Data of the
// part. Without a URL the part has no type.
func FromURL(t event.PartType, address string) event.Part {
	if address == "" {
		return event.Part{}
	}
	p, _ := (&Reader{}).linked(t, "", address) // only Put fails
	return p
}

// linked makes a part of a URL, and stores the body of a data: URL.
func (r *Reader) linked(t event.PartType, title, address string) (event.Part, error) {
	p := event.Part{Type: t, Name: title, URL: address}
	m, ok, err := render.Load(&p, nil)
	if err != nil || !ok || len(m.Data) == 0 {
		return p, err
	}
	p.URL, p.MediaType = "", m.Type
	return r.withBody(p, m.Data)
}

func (r *Reader) sound(o *Members) (p event.Part, err error) {
	inner, err := Open(o.Peek("input_audio"))
	if err != nil {
		return p, nil
	}
	format := inner.Required("format")
	body, err := base64.StdEncoding.DecodeString(inner.Required("data"))
	if err != nil {
		return p, nil
	}
	o.replace("input_audio", &inner)
	kind := "audio/" + format
	if format == "mp3" {
		kind = "audio/mpeg"
	}
	return r.withBody(event.Part{Type: event.AudioPart, MediaType: kind}, body)
}

// withBody adds the body to a part. An empty body makes a part without a type.
func (r *Reader) withBody(p event.Part, body []byte) (event.Part, error) {
	if len(body) == 0 {
		return event.Part{}, nil
	}
	p.Data = body
	if r.Put == nil {
		return p, nil
	}
	return p, r.store(&p)
}

// store stores the body of a part with Put.
func (r *Reader) store(p *event.Part) (err error) {
	p.Blob, err = r.Put(p.Data)
	p.Data = nil
	return err
}

// PutBlob returns a Put that stores bodies as blobs of a log.
func PutBlob(ctx context.Context, log *eventlog.Log) func(body []byte) (event.BlobRef, error) {
	return func(body []byte) (event.BlobRef, error) { return log.PutBlob(ctx, bytes.NewReader(body)) }
}

// StoreBodies stores the bodies of parts, and of parts in results, with put.
func StoreBodies(all []event.Part, put func([]byte) (event.BlobRef, error)) error {
	r := Reader{Put: put}
	for i := range all {
		p := &all[i]
		if p.Data != nil {
			if err := r.store(p); err != nil {
				return err
			}
		}
		if err := StoreBodies(p.Content, put); err != nil {
			return err
		}
	}
	return nil
}

// Arguments parses the arguments of a call of OpenAI, which are JSON in a string. If
// the string is no JSON, or too deep for a record, Arguments returns v.
func Arguments(v jsontext.Value) jsontext.Value {
	text, ok := rawjson.Text(v)
	if !ok {
		return v
	}
	if raw := jsontext.Value(text); (rawjson.WellFormed(raw) || raw.IsValid()) && !records.TooDeep(raw) {
		return raw
	}
	if modelapi.Blank(text) {
		return jsontext.Value(`{}`)
	}
	return v
}

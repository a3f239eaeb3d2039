// Package markdown writes a session as Markdown for readers: CommonMark, with
// <details> for long texts and embedded images.
//
// Text of the session stays verbatim and inside its place. Tags in it become text,
// its headings rank below the page's headings, an open code block ends with its
// message, and no external content is loaded.
package markdown

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/prices"
)

// Write writes a session: turns, messages, calls with their results, reasoning,
// compactions and forks. eventlog.All().OnPath() writes
// the active path. A range of the whole session writes rewound events too, and marks them.
// The heading is of the whole session; the table estimates the costs of answers without
// one, and nil estimates nothing.
//
// Write reads the session twice, and keeps a few messages in memory at a time. A
// missing session is eventlog.ErrNotFound. A nil log or writer is an error. If a body
// is missing, the text says so.
func Write(ctx context.Context, w io.Writer, log *eventlog.Log, session string, events eventlog.Range, table *prices.Table) error {
	if w == nil {
		return fmt.Errorf("write session %q: the writer is nil", session)
	}
	about, err := transcript.Load(ctx, log, session, table)
	if err != nil {
		return err
	}
	p := page{w: bufio.NewWriterSize(w, 64<<10), blob: interop.Bodies(ctx, log), hidden: map[string]int{}}
	p.head(&about)
	for x, err := range transcript.Read(ctx, log, session, events) {
		if err != nil {
			return err
		}
		p.entry(x)
	}
	p.foot(&about)
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("write session %q: %w", session, err)
	}
	return nil
}

// page writes a session. Its writer keeps the first error.
type page struct {
	w    *bufio.Writer
	blob func(event.BlobRef) ([]byte, error)
	// hidden counts the events without a place in the text, by type.
	hidden map[string]int
}

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p *page) head(a *transcript.About) {
	p.printf("# %s\n\n", plain(a.Title))
	for _, f := range a.Facts() {
		p.printf("- %s: %s\n", plain(f.Name), plain(f.Text))
	}
}

func (p *page) foot(a *transcript.About) {
	p.printf("\n---\n\n%s", transcript.Count(a.Head.Seq, "event"))
	if counts := transcript.TypeCounts(p.hidden); counts != "" {
		p.printf("; not shown: %s", plain(counts))
	}
	p.printf("\n")
}

// entry writes an entry, with a heading if it starts a turn.
func (p *page) entry(x *transcript.Entry) {
	if x.StartsTurn {
		p.printf("\n## Turn %d\n", x.Turn)
	}
	if x.IsMessage {
		p.heading(x, x.Speaker(), x.Details())
		if x.IsContext() {
			p.outputs(x.Message.Parts)
			return
		}
		for i := range x.Message.Parts {
			p.part(&x.Message.Parts[i], x)
		}
		return
	}
	n, ok := x.Note()
	if !ok {
		p.hidden[string(x.Event.Type)]++
		return
	}
	p.heading(x, n.Line(), nil)
	p.output("", n.Text)
	p.outputs(n.Parts)
}

func (p *page) heading(x *transcript.Entry, name string, about []string) {
	words := append([]string{name}, about...)
	words = append(words, x.Marks()...)
	words = append(words, fmt.Sprintf("#%d", x.Event.Seq))
	p.printf("\n### %s\n", plain(strings.Join(words, " · ")))
}

// part writes a part of a message. x has the results of the message's calls; nil if
// the part has no message.
func (p *page) part(part *event.Part, x *transcript.Entry) {
	switch part.Type {
	case event.TextPart:
		if text := prose(part.Text); text != "" {
			p.printf("\n%s\n", text)
		}
	case event.ReasoningPart:
		p.reasoning(part)
	case event.ToolCallPart, event.ServerToolCallPart:
		p.call(part, x)
	case event.ToolResultPart, event.ServerToolResultPart:
		p.result(part, "of "+strings.TrimSpace(part.Name+" "+part.CallID))
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		p.media(part)
	default:
		p.output(strings.TrimSpace(string(part.Type)+" "+part.Kind), string(part.Value)+string(part.Raw))
	}
}

func (p *page) reasoning(part *event.Part) {
	if strings.TrimSpace(part.Text) == "" {
		p.printf("\n*reasoning withheld*\n")
		return
	}
	p.details("reasoning", part.Text)
}

// call writes a call and its result.
func (p *page) call(part *event.Part, x *transcript.Entry) {
	arguments := transcript.Arguments(part.Arguments)
	line := transcript.OneLine(arguments)
	p.printf("\n→ **%s**", plain(part.Name))
	if line != "" {
		p.printf(" %s", code(line))
		arguments = nil
	}
	p.printf("\n")
	for _, a := range arguments {
		if line := transcript.OneLine([]transcript.Argument{{Text: a.Text}}); line != "" {
			p.printf("\n%s %s\n", plain(a.Name), code(line))
		} else {
			p.output(a.Name, a.Text)
		}
	}
	if x == nil || part.Type != event.ToolCallPart {
		return
	}
	r, ok := x.Results[part.CallID]
	if !ok {
		p.printf("\n*no result*\n")
		return
	}
	p.result(&r.Part, fmt.Sprintf("#%d", r.Seq))
}

// result writes a result. from names its event or its call.
func (p *page) result(part *event.Part, from string) {
	word := "←"
	switch {
	case part.Interrupted:
		word = "← **interrupted**"
	case part.IsError:
		word = "← **error**"
	}
	p.printf("\n%s %s\n", word, plain(from))
	p.outputs(part.Content)
}

// outputs writes parts that are not from a message. Text is written as output.
func (p *page) outputs(parts []event.Part) {
	for i := range parts {
		if part := &parts[i]; part.Type == event.TextPart {
			p.output("", part.Text)
		} else {
			p.part(part, nil)
		}
	}
}

// maxBody is the largest embedded body, in bytes.
const maxBody = 32 << 20

// media embeds an image, writes a text as output, and any other body as a
// placeholder.
func (p *page) media(part *event.Part) {
	words := plain(render.Placeholder(part))
	if part.Blob.Bytes > maxBody {
		p.printf("\n%s too large to stand here\n", words)
		return
	}
	m, ok, err := render.Load(part, p.blob)
	switch {
	case err != nil:
		p.printf("\n%s the body is missing\n", words)
	case ok && m.URL == "" && part.Type == event.ImagePart && m.IsImage():
		p.printf("\n![%s](%s)\n", words, m.Address())
	case ok && m.URL == "" && m.IsText():
		p.output(render.Placeholder(part), string(m.Data))
	default:
		p.printf("\n%s\n", words)
	}
}

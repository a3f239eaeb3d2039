// Package markdown writes a session as Markdown that people read: CommonMark, with
// <details> around what is long, and images in the text itself.
//
// What the session says stands as it was said, and stays where it stands: tags in
// it are text, its headings are lower than those of turns and speakers, a block
// of code that it leaves open ends with it, and nothing is loaded from elsewhere.
package markdown

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/render"
	"github.com/convlog/convlog/interop/transcript"
)

// Options say what is written. The zero value writes the active path.
type Options struct {
	// All writes what was rewound too, and marks it.
	All bool
}

// Write writes a session: its turns, messages, calls with their results,
// reasoning, compactions and forks. It reads the session twice, and holds no more
// of it in memory than a few messages at a time. A missing session is ErrNotFound;
// a body that is missing is said to be so in the text.
func Write(ctx context.Context, w io.Writer, log *eventlog.Log, session string, opts ...Options) error {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	if w == nil {
		return fmt.Errorf("write session %q: the writer is nil", session)
	}
	about, err := transcript.Load(ctx, log, session)
	if err != nil {
		return err
	}
	p := page{w: bufio.NewWriterSize(w, 64<<10), blob: interop.Bodies(ctx, log), hidden: map[string]int{}}
	p.head(&about)
	for x, err := range transcript.Read(ctx, log, session, transcript.Options{All: o.All}) {
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

// page is being written. Its writer keeps the first error.
type page struct {
	w    *bufio.Writer
	blob func(event.BlobRef) ([]byte, error)
	// hidden counts the events that are not shown, by type.
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
	p.printf("\n---\n\n%s", interop.Count(a.Head.Seq, "event"))
	if not := transcript.TypeCounts(p.hidden); not != "" {
		p.printf("; not shown: %s", plain(not))
	}
	p.printf("\n")
}

// entry writes what is read as one.
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
	p.heading(x, n.Line, nil)
	p.folded("", n.Text)
	p.outputs(n.Parts)
}

func (p *page) heading(x *transcript.Entry, name string, about []string) {
	words := append([]string{name}, about...)
	words = append(words, x.Marks()...)
	words = append(words, fmt.Sprintf("#%d", x.Event.Seq))
	p.printf("\n### %s\n", plain(strings.Join(words, " · ")))
}

// part writes a part of a message; x is the message, which has the results of its
// calls.
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
		p.folded(strings.TrimSpace(string(part.Type)+" "+part.Kind), string(part.Value)+string(part.Raw))
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
			p.folded(a.Name, a.Text)
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

// result writes a result; from says where it stands.
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

// outputs writes parts that nobody said: text is folded as output is.
func (p *page) outputs(parts []event.Part) {
	for i := range parts {
		if part := &parts[i]; part.Type == event.TextPart {
			p.folded("", part.Text)
		} else {
			p.part(part, nil)
		}
	}
}

// maxBody is the largest body that stands in the text, in bytes.
const maxBody = 32 << 20

// media writes an image as it is, a text folded, and of anything else what it is.
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
		p.folded(render.Placeholder(part), string(m.Data))
	default:
		p.printf("\n%s\n", words)
	}
}

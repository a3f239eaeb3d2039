package html

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/interop/internal/fence"
)

// Texts beyond these limits are folded.
const (
	foldLines = 12
	foldBytes = 2000
	// Messages of the user and the assistant have higher limits.
	foldMessageLines = 400
	foldMessageBytes = 40000
)

// entry writes an entry, with a heading if it starts a turn.
func (p *page) entry(x *transcript.Entry) {
	if x.StartsTurn {
		p.tag(`<h2>`)
		p.text(fmt.Sprintf("Turn %d", x.Turn))
		p.tag("</h2>\n")
	}
	if x.IsMessage {
		p.message(x)
		return
	}
	n, ok := x.Note()
	if !ok {
		p.hidden[string(x.Event.Type)]++
		return
	}
	p.open(x, "note")
	p.text(n.Line())
	p.marks(x)
	p.tag("</div>\n")
	p.output("", n.Text)
	p.outputs(n.Parts)
	p.tag("</section>\n")
}

// open starts an entry and its heading. The caller closes the heading.
func (p *page) open(x *transcript.Entry, class markup) {
	if x.Orphaned {
		class += " orphaned"
	}
	p.tag(`<section class="` + class + `"`)
	p.attr("id", fmt.Sprintf("e%d", x.Event.Seq))
	p.tag(`><div class="h"><a class="n"`)
	p.attr("href", fmt.Sprintf("#e%d", x.Event.Seq))
	p.tag(`>`)
	p.text(fmt.Sprintf("#%d", x.Event.Seq))
	p.tag(`</a> `)
}

func (p *page) message(x *transcript.Entry) {
	m := &x.Message
	p.open(x, classOf(x))
	p.tag(`<b>`)
	p.text(x.Speaker())
	p.tag(`</b>`)
	for _, word := range x.Details() {
		p.detail(word)
	}
	p.marks(x)
	p.tag("</div>\n")
	// Messages of other roles are folded like output.
	text := m.Text()
	fold := (m.Role != event.User && m.Role != event.Assistant || x.IsContext()) && isLong(text, foldLines, foldBytes)
	if fold {
		p.tag("<details><summary>")
		p.summary(text)
		p.tag("</summary>\n")
	}
	for i := range m.Parts {
		p.part(&m.Parts[i], x)
	}
	if fold {
		p.tag("</details>\n")
	}
	p.tag("</section>\n")
}

// detail writes a detail of an entry; nothing if text is empty.
func (p *page) detail(text string) {
	if text != "" {
		p.tag(` <span class="w">`)
		p.text(text)
		p.tag(`</span>`)
	}
}

// marks writes the marks of an entry.
func (p *page) marks(x *transcript.Entry) {
	for _, text := range x.Marks() {
		p.tag(` <span class="mark">`)
		p.text(text)
		p.tag(`</span>`)
	}
}

// classOf returns the CSS class of a message.
func classOf(x *transcript.Entry) markup {
	switch role := x.Message.Role; {
	case role == event.User && !x.IsContext():
		return "user"
	case role == event.Assistant:
		return "assistant"
	case role == event.Tool:
		return "tool"
	}
	return "system"
}

// part writes a part of a message. x has the results of the message's calls; nil if
// the part has no message.
func (p *page) part(part *event.Part, x *transcript.Entry) {
	switch part.Type {
	case event.TextPart:
		p.messageText(part.Text)
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

// messageText writes a text of a message, with its code blocks.
func (p *page) messageText(text string) {
	if !isLong(text, foldMessageLines, foldMessageBytes) {
		p.prose(text)
		return
	}
	p.tag("<details><summary>")
	p.summary(text)
	p.tag("</summary>\n")
	p.prose(text)
	p.tag("</details>\n")
}

func (p *page) prose(text string) {
	for _, s := range fence.Split(strings.ReplaceAll(text, "\r\n", "\n")) {
		if s.Code {
			p.pre(s.Text)
			continue
		}
		p.tag(`<div class="t">`)
		p.text(strings.Trim(s.Text, "\n"))
		p.tag("</div>\n")
	}
}

func (p *page) pre(text string) {
	p.tag("<pre>\n") // a browser passes over the first newline
	p.text(text)
	p.tag("</pre>\n")
}

func (p *page) reasoning(part *event.Part) {
	if strings.TrimSpace(part.Text) == "" {
		p.tag("<div class=\"w\">reasoning withheld</div>\n")
		return
	}
	p.tag(`<details class="r"><summary>`)
	p.detail("reasoning")
	p.tag(" ")
	p.summary(part.Text)
	p.tag("</summary><div class=\"t\">")
	p.text(part.Text)
	p.tag("</div></details>\n")
}

// summary writes the number of lines of a folded text, and its beginning.
func (p *page) summary(text string) {
	p.tag(`<span class="w">`)
	p.text(transcript.Count(int64(transcript.Lines(text)), "line"))
	p.tag(`</span> <code>`)
	p.text(transcript.Gist(text))
	p.tag(`</code>`)
}

func isLong(text string, mostLines, mostBytes int) bool {
	return len(text) > mostBytes || transcript.Lines(text) > mostLines
}

// output writes a text with an optional name, folded if it is long.
func (p *page) output(name, text string) {
	if strings.Trim(text, "\n") != "" || name != "" {
		p.fold(func() { p.detail(name) }, text)
	}
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

// fold writes a heading and a text, folded if the text is long.
func (p *page) fold(heading func(), text string) {
	text = strings.Trim(text, "\n")
	if !isLong(text, foldLines, foldBytes) {
		heading()
		if text != "" {
			p.pre(text)
		}
		return
	}
	p.tag("<details><summary>")
	heading()
	p.summary(text)
	p.tag("</summary>\n")
	p.pre(text)
	p.tag("</details>\n")
}

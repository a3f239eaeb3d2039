package html

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/fence"
	"github.com/convlog/convlog/interop/transcript"
)

// What is longer than this is folded.
const (
	foldLines = 12
	foldBytes = 2000
	// What is said is folded only where it would bury the rest.
	foldMessageLines = 400
	foldMessageBytes = 40000
)

// entry writes what is read as one.
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
	p.text(n.Line)
	p.marks(x)
	p.tag("</div>\n")
	p.folded("", n.Text)
	p.outputs(n.Parts)
	p.tag("</section>\n")
}

// open begins an entry with its heading, which is left open.
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
		p.word(word)
	}
	p.marks(x)
	p.tag("</div>\n")
	// What neither the user nor the assistant says is folded as output is.
	text := m.Text()
	folds := (m.Role != event.User && m.Role != event.Assistant || x.IsContext()) && long(text, foldLines, foldBytes)
	if folds {
		p.tag("<details><summary>")
		p.summary(text)
		p.tag("</summary>\n")
	}
	for i := range m.Parts {
		p.part(&m.Parts[i], x)
	}
	if folds {
		p.tag("</details>\n")
	}
	p.tag("</section>\n")
}

// word writes something that is known about an entry.
func (p *page) word(text string) {
	if text != "" {
		p.tag(` <span class="w">`)
		p.text(text)
		p.tag(`</span>`)
	}
}

// marks says what is unusual about an entry.
func (p *page) marks(x *transcript.Entry) {
	for _, text := range x.Marks() {
		p.tag(` <span class="mark">`)
		p.text(text)
		p.tag(`</span>`)
	}
}

// classOf says whose message it is.
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

// part writes a part of a message; x is the message, which has the results of its
// calls.
func (p *page) part(part *event.Part, x *transcript.Entry) {
	switch part.Type {
	case event.TextPart:
		p.said(part.Text)
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

// said writes what somebody says: text, with blocks of code in it.
func (p *page) said(text string) {
	if !long(text, foldMessageLines, foldMessageBytes) {
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
	p.word("reasoning")
	p.tag(" ")
	p.summary(part.Text)
	p.tag("</summary><div class=\"t\">")
	p.text(part.Text)
	p.tag("</div></details>\n")
}

// summary writes how long a folded text is, and how it begins.
func (p *page) summary(text string) {
	p.tag(`<span class="w">`)
	p.text(interop.Count(int64(transcript.Lines(text)), "line"))
	p.tag(`</span> <code>`)
	p.text(transcript.Gist(text))
	p.tag(`</code>`)
}

func long(text string, mostLines, mostBytes int) bool {
	return len(text) > mostBytes || transcript.Lines(text) > mostLines
}

// folded writes output that may have a name.
func (p *page) folded(name, text string) {
	if strings.Trim(text, "\n") != "" || name != "" {
		p.output(func() { p.word(name) }, text)
	}
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

// output writes output, folded if it is long, with what stands before it.
func (p *page) output(heading func(), text string) {
	text = strings.Trim(text, "\n")
	if !long(text, foldLines, foldBytes) {
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

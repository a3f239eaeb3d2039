package main

import (
	"fmt"
	"strings"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

// renderer prints the entries of a transcript as text.
type renderer struct {
	*printer
	full   bool // fold nothing
	begun  bool // something was printed
	spaced bool // the newest output is a message
	most   int  // lines of a text in the current message
	raw    run  // foreign records to print
}

// The numbers of lines that are shown before the rest is folded.
const (
	foldMessage   = 60
	foldContext   = 10 // of messages that are not from a user or a model
	foldReasoning = 4
	foldResult    = 10
	foldArgument  = 6
	foldEvent     = 1
)

const indent = "  "

// entry prints one event. A run of foreign records becomes one line.
func (r *renderer) entry(x *transcript.Entry) error {
	foreign := !r.full && isForeign(&x.Event)
	if !foreign || x.Orphaned != r.raw.orphaned {
		r.finish()
	}
	switch {
	case foreign:
		r.raw.add(x)
	case x.IsMessage:
		r.message(x)
	case x.Event.Type.Name() == event.TurnStarted:
		r.turn(x)
	default:
		r.other(x)
	}
	_, err := r.Write(nil)
	return err
}

// isForeign reports whether an event is a foreign record, whose text show prints with --full only.
func isForeign(e *event.Event) bool { return strings.Contains(string(e.Type), ":") }

// finish prints the foreign records that wait for the end of their run.
func (r *renderer) finish() {
	if r.raw.events == 0 {
		return
	}
	r.gap(false)
	r.Printf("%s", r.Paint(term.Dim, r.raw.String()))
	if r.raw.orphaned {
		r.Printf("%s%s", r.Paint(term.Dim, " · "), r.Paint(term.Yellow, orphanedMark))
	}
	r.Printf("\n")
	r.raw = run{}
}

// run is a run of foreign records: an importer stored them raw.
type run struct {
	first, last int64
	events      int
	orphaned    bool
	types       []string
	counts      map[string]int
}

func (x *run) add(foreign *transcript.Entry) {
	e := &foreign.Event
	if x.events == 0 {
		*x = run{first: e.Seq, orphaned: foreign.Orphaned, counts: map[string]int{}}
	}
	name := clean(string(e.Type))
	if x.counts[name]++; x.counts[name] == 1 {
		x.types = append(x.types, name)
	}
	x.last = e.Seq
	x.events++
}

func (x *run) String() string {
	text := fmt.Sprintf("#%d", x.first)
	if x.last > x.first {
		text += fmt.Sprintf("–#%d", x.last)
	}
	for i, name := range x.types {
		if i > 0 {
			text += ","
		}
		text += " " + name
		if n := x.counts[name]; n > 1 {
			text += " ×" + thousands(n)
		}
	}
	return text
}

// gap prints an empty line before and after each message.
func (r *renderer) gap(message bool) {
	if r.begun && (message || r.spaced) {
		r.Printf("\n")
	}
	r.begun, r.spaced = true, message
}

func (r *renderer) turn(x *transcript.Entry) {
	e := &x.Event
	r.gap(true)
	r.spaced = false
	name := "turn"
	if turn, ok, err := event.Decode[event.TurnStart](e); ok && err == nil {
		name = fmt.Sprintf("turn %d", turn.Index)
	}
	r.Printf("%s %s%s\n", r.Paint(term.Bold, "── "+name+" ──"), r.Paint(term.Dim, fmt.Sprintf("#%d %s", e.Seq, r.clock(e.Timestamp))), r.marks(x))
}

func (r *renderer) message(x *transcript.Entry) {
	r.gap(true)
	m := &x.Message
	var about []string
	if m.Model != "" {
		about = append(about, clean(m.Model))
	}
	r.heading(x, r.speaker(&x.Event, m.Role), about)
	r.most = foldMessage
	if m.Role != event.User && m.Role != event.Assistant || x.IsContext() {
		r.most = foldContext
	}
	for i := range m.Parts {
		r.part(&m.Parts[i], x.Results, indent)
	}
}

// orphanedMark marks orphaned events.
const orphanedMark = transcript.OrphanedMark

// heading prints the first line of an event: its seq, its name, the words of about,
// its time, its cost and its marks.
func (r *renderer) heading(x *transcript.Entry, name string, about []string) {
	if !x.Event.Timestamp.IsZero() {
		about = append(about, r.clock(x.Event.Timestamp))
	}
	if x.Cost > 0 {
		about = append(about, price(x.Cost))
	}
	text := name
	if x.Event.Seq > 0 {
		text = r.Paint(term.Dim, seqsFrom(x.Event.Seq, x.Last)) + " " + name
	}
	for _, word := range about {
		text += r.Paint(term.Dim, " · "+word)
	}
	r.Printf("%s%s\n", text, r.marks(x))
}

// marks are the unusual properties of an event.
func (r *renderer) marks(x *transcript.Entry) (text string) {
	for _, mark := range x.Marks() {
		text += r.Paint(term.Dim, " · ") + r.Paint(term.Yellow, clean(mark))
	}
	return text
}

// speaker is the role of a message, in colour.
func (p *printer) speaker(e *event.Event, role event.Role) string {
	if e.IsContext() {
		return p.Paint(term.Yellow, transcript.ContextSpeaker)
	}
	return p.Paint(roleStyle(role), string(role))
}

func roleStyle(role event.Role) term.Style {
	switch role {
	case event.User:
		return term.Green
	case event.Assistant:
		return term.Blue
	case event.Tool:
		return term.Cyan
	}
	return term.Yellow
}

// other prints an event that is not a message: one line, and a folded text below.
func (r *renderer) other(x *transcript.Entry) {
	r.gap(false)
	var about []string
	detail, n := describe(&x.Event)
	if detail != "" {
		about = append(about, detail)
	}
	r.heading(x, clean(string(x.Event.Type)), about)
	r.block(n.Text, indent, foldMessage/4, term.Dim)
	r.most = foldContext
	for i := range n.Parts {
		r.part(&n.Parts[i], nil, indent)
	}
}

// block prints text, folded after most lines.
func (r *renderer) block(text, indent string, most int, s term.Style) {
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	shown := lines
	if !r.full && len(lines) > most+1 {
		shown = lines[:most]
	}
	for _, line := range shown {
		r.Printf("%s%s\n", indent, r.Paint(s, r.clip(line)))
	}
	if hidden := len(lines) - len(shown); hidden > 0 {
		r.Printf("%s%s\n", indent, r.Paint(term.Dim, "… "+count(hidden, "more line")))
	}
}

// clip makes a line safe for a terminal, and folds a very long line.
func (r *renderer) clip(line string) string {
	const most = 1000
	if r.full || len(line) <= most+100 {
		return clean(line)
	}
	text := []rune(line)
	if len(text) <= most+100 {
		return clean(line)
	}
	return clean(string(text[:most])) + " … " + count(int64(len(text)-most), "more character")
}

// part prints one part of a message. results are the results of the message's calls.
func (r *renderer) part(p *event.Part, results map[string]transcript.Result, in string) {
	switch p.Type {
	case event.TextPart:
		r.block(p.Text, in, r.most, "")
	case event.ReasoningPart:
		r.reasoning(p, in)
	case event.ToolCallPart, event.ServerToolCallPart:
		r.call(p, in)
		if answer, ok := results[p.CallID]; ok && p.Type == event.ToolCallPart {
			from := "not recorded" // the model gets a made-up result
			if answer.Seq > 0 {
				from = at(answer.Seq)
			}
			r.result(&answer.Part, from, in+indent)
		}
	case event.ToolResultPart, event.ServerToolResultPart:
		r.result(p, "of "+clean(strings.TrimSpace(p.Name+" "+p.CallID)), in)
	case event.ImagePart, event.AudioPart, event.DocumentPart:
		r.Printf("%s%s\n", in, r.Paint(term.Dim, body(p)))
	default:
		r.Printf("%s%s\n", in, r.Paint(term.Dim, "["+clean(string(p.Type)+" "+p.Kind)+"] "+brief(string(p.Value)+string(p.Raw), 100)))
	}
}

func (r *renderer) reasoning(p *event.Part, in string) {
	if strings.TrimSpace(p.Text) == "" {
		r.Printf("%s%s\n", in, r.Paint(term.Dim, "(reasoning withheld)"))
		return
	}
	r.Printf("%s%s\n", in, r.Paint(term.Dim, "(reasoning)"))
	r.block(p.Text, in, foldReasoning, term.Dim)
}

// body describes an image, a sound or a document.
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

// call prints a tool call. Short arguments are on its line, long ones below it.
func (r *renderer) call(p *event.Part, in string) {
	arguments := transcript.Arguments(p.Arguments)
	line := oneLine(arguments)
	r.Printf("%s%s %s%s\n", in, r.Paint(term.Cyan, "→"), r.Paint(term.Bold, clean(p.Name)), line)
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

// oneLine is " (name: text, …)"; empty if the arguments are too long for one line.
func oneLine(arguments []transcript.Argument) string {
	line := transcript.OneLine(arguments)
	if line == "" && len(arguments) > 0 {
		return ""
	}
	return " (" + clean(line) + ")"
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
	s := term.Cyan
	if p.IsError {
		s = term.Red
	}
	r.Printf("%s%s %s\n", in, r.Paint(s, mark), r.Paint(term.Dim, from))
	for i := range p.Content {
		if c := &p.Content[i]; c.Type == event.TextPart {
			r.block(c.Text, in+indent, foldResult, "")
		} else {
			r.part(c, nil, in+indent)
		}
	}
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/transcript"
)

// renderer prints entries for people.
type renderer struct {
	*printer
	full   bool // fold nothing
	spaced bool // the last thing printed was a message
	begun  bool
	most   int // how many lines of a text the message shows
	raw    run // foreign records that were not printed yet
}

// How many lines of what are shown before the rest is folded.
const (
	foldMessage   = 60
	foldContext   = 10 // what no user and no model said
	foldReasoning = 4
	foldResult    = 10
	foldArgument  = 6
	foldEvent     = 1
)

const indent = "  "

// entry prints one event. Runs of foreign records become one line.
func (r *renderer) entry(x *transcript.Entry) error {
	foreign := !r.full && strings.Contains(string(x.Event.Type), ":")
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
	_, err := r.w.Write(nil)
	return err
}

// finish prints what was not printed yet.
func (r *renderer) finish() {
	if r.raw.events == 0 {
		return
	}
	r.gap(false)
	text := r.paint(dim, r.raw.String())
	if r.raw.orphaned {
		text += r.paint(dim, " · ") + r.paint(yellow, orphanedMark)
	}
	r.printf("%s\n", text)
	r.raw = run{}
}

// run is a run of foreign records, which an importer kept raw.
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
		text += fmt.Sprintf("–%d", x.last)
	}
	for i, name := range x.types {
		if i > 0 {
			text += ","
		}
		text += " " + name
		if n := x.counts[name]; n > 1 {
			text += " ×" + thousands(int64(n))
		}
	}
	return text
}

// gap separates messages from what stands before and after.
func (r *renderer) gap(message bool) {
	if r.begun && (message || r.spaced) {
		r.printf("\n")
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
	r.printf("%s %s%s\n", r.paint(bold, "── "+name+" ──"), r.paint(dim, fmt.Sprintf("#%d %s", e.Seq, r.clock(e.Timestamp))), r.marks(x))
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

// orphanedMark stands behind what was rewound.
const orphanedMark = transcript.OrphanedMark

// heading prints the first line of an event: its seq, name and what else is
// known of it, its time, cost and marks at the end.
func (r *renderer) heading(x *transcript.Entry, name string, about []string) {
	if !x.Event.Timestamp.IsZero() {
		about = append(about, r.clock(x.Event.Timestamp))
	}
	if x.Cost > 0 {
		about = append(about, price(x.Cost))
	}
	text := name
	if x.Event.Seq > 0 {
		seqs := at(x.Event.Seq)
		if x.Last > x.Event.Seq {
			seqs += "–" + at(x.Last)
		}
		text = r.paint(dim, seqs) + " " + name
	}
	for _, word := range about {
		text += r.paint(dim, " · "+word)
	}
	r.printf("%s%s\n", text, r.marks(x))
}

// marks are what is unusual about an event.
func (r *renderer) marks(x *transcript.Entry) (text string) {
	for _, mark := range x.Marks() {
		text += r.paint(dim, " · ") + r.paint(yellow, clean(mark))
	}
	return text
}

// speaker is who says a message, in colour.
func (p *printer) speaker(e *event.Event, role event.Role) string {
	if e.IsContext() {
		return p.paint(yellow, transcript.ContextSpeaker)
	}
	return p.paint(roleStyle(role), string(role))
}

func roleStyle(role event.Role) style {
	switch role {
	case event.User:
		return green
	case event.Assistant:
		return blue
	case event.Tool:
		return cyan
	}
	return yellow
}

// other prints an event that is no message: one line, and a text that belongs
// to it folded below.
func (r *renderer) other(x *transcript.Entry) {
	r.gap(false)
	var about []string
	detail, text := describe(&x.Event)
	if detail != "" {
		about = append(about, detail)
	}
	r.heading(x, clean(string(x.Event.Type)), about)
	r.block(text, indent, foldMessage/4, dim)
}

// block prints text line by line, folded after most lines.
func (r *renderer) block(text, indent string, most int, s style) {
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
		r.printf("%s%s\n", indent, r.styled(s, r.clip(line)))
	}
	if hidden := len(lines) - len(shown); hidden > 0 {
		r.printf("%s%s\n", indent, r.paint(dim, "… "+count(int64(hidden), "more line")))
	}
}

func (r *renderer) styled(s style, text string) string {
	if s == "" {
		return text
	}
	return r.paint(s, text)
}

// clip makes a line safe, and folds what is much longer than a screen.
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

// clock is when an event happened: local time for a person, else UTC.
func (p *printer) clock(t time.Time) string {
	if p.terminal {
		t = t.Local()
	}
	return t.Format("2006-01-02 15:04:05")
}

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
)

// renderer prints entries for people.
type renderer struct {
	*printer
	full   bool // fold nothing
	spaced bool // the last thing printed was a message
	begun  bool
	raw    run // foreign records that were not printed yet
}

// How many lines of what are shown before the rest is folded.
const (
	foldMessage   = 60
	foldReasoning = 4
	foldResult    = 10
	foldArgument  = 6
	foldEvent     = 1
)

const indent = "  "

// entry prints one event. Runs of foreign records become one line.
func (r *renderer) entry(x *entry) error {
	foreign := !r.full && strings.Contains(string(x.event.Type), ":")
	if !foreign || x.orphaned != r.raw.orphaned {
		r.finish()
	}
	switch {
	case foreign:
		r.raw.add(x)
	case x.isMessage:
		r.message(x)
	case x.event.Type.Name() == eventlog.TurnStarted:
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

func (x *run) add(foreign *entry) {
	e := &foreign.event
	if x.events == 0 {
		*x = run{first: e.Seq, orphaned: foreign.orphaned, counts: map[string]int{}}
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

func (r *renderer) turn(x *entry) {
	e := &x.event
	r.gap(true)
	r.spaced = false
	name := "turn"
	if turn, ok, err := e.TurnStart(); ok && err == nil {
		name = fmt.Sprintf("turn %d", turn.Index)
	}
	r.printf("%s %s%s\n", r.paint(bold, "── "+name+" ──"), r.paint(dim, fmt.Sprintf("#%d %s", e.Seq, r.clock(e.Timestamp))), r.marks(x))
}

func (r *renderer) message(x *entry) {
	r.gap(true)
	m := &x.message
	var about []string
	if m.Model != "" {
		about = append(about, clean(m.Model))
	}
	r.heading(x, r.paint(roleStyle(m.Role), string(m.Role)), about)
	for i := range m.Parts {
		r.part(&m.Parts[i], x.results, indent)
	}
}

// orphanedMark stands behind what was rewound.
const orphanedMark = "orphaned"

// heading prints the first line of an event: its seq, name and what else is
// known of it, its time, cost and marks at the end.
func (r *renderer) heading(x *entry, name string, about []string) {
	if !x.event.Timestamp.IsZero() {
		about = append(about, r.clock(x.event.Timestamp))
	}
	if x.event.Cost > 0 {
		about = append(about, "$"+x.event.Cost.String())
	}
	text := name
	if x.event.Seq > 0 {
		text = r.paint(dim, at(x.event.Seq)) + " " + name
	}
	for _, word := range about {
		text += r.paint(dim, " · "+word)
	}
	r.printf("%s%s\n", text, r.marks(x))
}

// marks are what is unusual about an event.
func (r *renderer) marks(x *entry) (text string) {
	var marks []string
	if broken := brokenRules(&x.event); broken != "" {
		marks = append(marks, "broken: "+broken)
	}
	if x.note != "" {
		marks = append(marks, clean(x.note))
	}
	if x.orphaned {
		marks = append(marks, orphanedMark)
	}
	for _, mark := range marks {
		text += r.paint(dim, " · ") + r.paint(yellow, mark)
	}
	return text
}

func roleStyle(role eventlog.Role) style {
	switch role {
	case eventlog.User:
		return green
	case eventlog.Assistant:
		return blue
	case eventlog.Tool:
		return cyan
	}
	return yellow
}

// brokenRules are the rules that an imported event breaks.
func brokenRules(e *eventlog.Event) string {
	value, ok := e.MetadataValue("broken")
	if !ok {
		return ""
	}
	return clean(strings.Trim(strings.ReplaceAll(string(value), `"`, ""), "[]"))
}

// other prints an event that is no message: one line, and a text that belongs
// to it folded below.
func (r *renderer) other(x *entry) {
	r.gap(false)
	var about []string
	detail, text := describe(&x.event)
	if detail != "" {
		about = append(about, detail)
	}
	r.heading(x, clean(string(x.event.Type)), about)
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

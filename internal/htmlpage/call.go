package htmlpage

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/linediff"
	"github.com/convlog/convlog/internal/transcript"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// call is the view of a call and its result.
func (v *View) call(p *event.Part, x *transcript.Entry, link string) *Call {
	c := &Call{Name: transcript.Visible(cmp.Or(p.Name, "tool")), State: "open", Children: v.Children[p.CallID]}
	arguments := transcript.Arguments(p.Arguments)
	result, ended := transcript.Result{}, false
	if x != nil {
		result, ended = x.Results[p.CallID]
		v.changes(c, p.CallID)
	}
	if c.Gist == "" {
		c.Gist = gist(arguments)
	}
	if len(c.Diffs) == 0 {
		v.arguments(c, arguments, link)
	}
	if p.Type == event.ServerToolCallPart && !ended {
		c.State = "ok" // the result is a part of its own
	}
	if ended {
		if c.Result = result.Seq; c.Result != v.anchored {
			c.Anchor, v.anchored = c.Result, c.Result
		}
		v.result(c, &result.Part, v.link(result.Seq))
		c.Outcome = transcript.Join(c.Outcome, Took(x.Event.Timestamp, result.At))
		if len(c.Diffs) > 0 && c.State == "ok" && !v.Whole {
			c.Results = nil // the change says it
		}
	}
	c.Unfolded = c.Unfolded || v.Whole && c.lines() <= mostLines
	return c
}

// lines is the number of lines of the arguments and the results.
func (c *Call) lines() (n int) {
	for _, a := range c.Arguments {
		n += a.Text.Lines
	}
	for _, p := range c.Results {
		n += p.Text.Lines
	}
	return n
}

// loneResult is a result without its call on the page.
func (v *View) loneResult(p *event.Part, e *Entry) *Call {
	c := &Call{Name: transcript.Visible(cmp.Or(p.Name, "result")), Gist: transcript.Visible("result of call " + p.CallID), Result: e.Seq}
	v.result(c, p, e.Link)
	c.Unfolded = c.Unfolded || v.Whole && c.lines() <= mostLines
	return c
}

// changes describes the call by what it did to files.
func (v *View) changes(c *Call, call string) {
	var paths []string
	added, removed := 0, 0
	for _, change := range v.Changes[call] {
		switch {
		case change.Does == files.Run:
			c.Gist = transcript.Visible(transcript.Gist(change.Command))
		case change.Path != "":
			paths = append(paths, files.Below(v.Folder, change.Path))
		}
		if hunks := change.Hunks(); len(hunks) > 0 {
			d := v.Diff(files.Below(v.Folder, cmp.Or(change.To, change.Path)), hunks)
			c.Diffs, added, removed = append(c.Diffs, d), added+d.Added, removed+d.Removed
		}
	}
	if len(paths) > 0 && c.Gist == "" {
		c.Gist = transcript.Visible(strings.Join(paths, ", "))
	}
	if len(c.Diffs) > 0 {
		c.Outcome = fmt.Sprintf("+%d −%d", added, removed)
		c.Unfolded = added+removed <= mostLines
	}
}

// usual are the names of the arguments that say best what a call does.
var usual = []string{"command", "cmd", "file_path", "path", "filePath", "pattern", "query", "url", "description", "prompt", "code"}

// gist says on one line what a call does.
func gist(arguments []transcript.Argument) string {
	for _, name := range usual {
		for _, a := range arguments {
			if a.Name == name && a.Text != "" {
				return transcript.Visible(transcript.Gist(a.Text))
			}
		}
	}
	var all []string
	for _, a := range arguments {
		all = append(all, a.Label()+transcript.Gist(a.Text))
	}
	return transcript.Visible(transcript.Gist(strings.Join(all, ", ")))
}

// arguments shows the arguments of a call, unless its gist is all of them.
func (v *View) arguments(c *Call, arguments []transcript.Argument, link string) {
	const oneLine = 60
	if len(arguments) == 1 && transcript.Visible(arguments[0].Text) == c.Gist && utf8.RuneCountInString(c.Gist) <= oneLine {
		return
	}
	for _, a := range arguments {
		language := ""
		switch {
		case a.Name == "command" || a.Name == "cmd" || a.Name == "script":
			language = "bash"
		case strings.HasPrefix(a.Text, "{") || strings.HasPrefix(a.Text, "["):
			language = "json"
		}
		c.Arguments = append(c.Arguments, Argument{transcript.Visible(a.Name), v.text(a.Text, language, link)})
	}
}

// result adds the result of a call.
func (v *View) result(c *Call, p *event.Part, link string) {
	c.State = "ok"
	switch {
	case p.Interrupted:
		c.State, c.Outcome = "interrupted", transcript.Join("interrupted", c.Outcome)
	case p.IsError:
		c.State, c.Unfolded = "failed", true
	}
	text := ""
	for i := range p.Content {
		part := &p.Content[i]
		if part.Type == event.TextPart {
			text += part.Text
			if strings.TrimSpace(part.Text) != "" {
				c.Results = append(c.Results, Part{Kind: "output", Text: v.text(part.Text, "", link)})
			}
			continue
		}
		c.Results = append(c.Results, v.part(part, nil, &Entry{Link: link}))
	}
	code, exited := exitCode(text)
	switch {
	case exited && (code != 0 || p.IsError):
		c.Outcome = transcript.Join("exit "+strconv.Itoa(code), c.Outcome)
	case c.State == "failed":
		c.Outcome = transcript.Join("failed", c.Outcome)
	case c.Outcome == "" && strings.TrimSpace(text) != "":
		c.Outcome = transcript.Count(int64(transcript.Lines(text)), "line")
	}
}

// exitLine is a line of a result with the exit code of a command, as programs write it.
var exitLine = regexp.MustCompile(`(?m)^(?:Exit code:? |Process exited with code |\[?exit code:? ?|.*exited with (?:exit )?code )(-?\d{1,6})\b`)

// exitCode is the exit code of a command, if its result has one.
func exitCode(text string) (code int, ok bool) {
	const ends = 512 // the code is at an end of the result
	begin, end := text[:min(ends, len(text))], text[max(0, len(text)-ends):]
	for _, part := range []string{begin, end} {
		if m := exitLine.FindStringSubmatch(part); m != nil {
			code, err := strconv.Atoi(m[1])
			return code, err == nil
		}
	}
	return 0, false
}

// Took writes the time between two times; empty if it is unknown.
func Took(from, to time.Time) string {
	if event.Dated(from).IsZero() || !to.After(from) {
		return ""
	}
	return Duration(to.Sub(from))
}

// Duration writes a duration in its two largest units.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d h %02d min", d/time.Hour, d%time.Hour/time.Minute)
}

// Diff is a change of one file.
type Diff struct {
	Path           string
	Added, Removed int
	Lines          []DiffLine
	// Left is the number of lines that the page leaves out.
	Left int
}

// DiffLine is a line of a diff. Kind is add, del, hunk, or empty.
type DiffLine struct{ Kind, Sign, Text string }

// diffLines is the most lines of a diff on a page of many.
const diffLines = 200

// Diff makes the view of a change of a file.
func (v *View) Diff(path string, hunks []linediff.Hunk) Diff {
	d := Diff{Path: transcript.Visible(path)}
	for i := range hunks {
		added, removed, _ := hunks[i].Count()
		d.Added, d.Removed = d.Added+added, d.Removed+removed
		if len(hunks) > 1 || hunks[i].Old > 1 || hunks[i].New > 1 {
			d.Lines = append(d.Lines, DiffLine{Kind: "hunk", Text: hunks[i].Heading()})
		}
		for _, line := range hunks[i].Lines {
			d.Lines = append(d.Lines, diffLine(line))
		}
	}
	if !v.Whole && v.EventLink != nil && len(d.Lines) > diffLines {
		d.Left, d.Lines = len(d.Lines)-diffLines, d.Lines[:diffLines]
	}
	return d
}

func diffLine(line string) DiffLine {
	if line == "" || line == linediff.NoEnd {
		return DiffLine{Kind: "hunk", Text: line}
	}
	l := DiffLine{Sign: line[:1], Text: transcript.Visible(line[1:])}
	switch line[0] {
	case '+':
		l.Kind = "add"
	case '-':
		l.Kind, l.Sign = "del", "−"
	}
	return l
}

package examples

import (
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the recording of docs anew")

// The recording of README.md: a real run of examples/agent that is killed while a refund
// waits, the approval, the next run, and the length of the file of refunds.
func TestRecording(t *testing.T) {
	t.Parallel()
	program, dir := build(t, "agent"), t.TempDir()
	const question = "Please refund A1: the mug is broken.\n"
	first := startAgent(t, program, dir, question)
	first.until("approve chat\n")
	first.kill()
	approve(t, filepath.Join(dir, "support"))
	second := startAgent(t, program, dir, "").end()

	var r recording
	r.command("go run ./examples/agent")
	r.output("> "+question+strings.TrimPrefix(first.got.String(), "> "), 0.5)
	r.note("kill -9")
	r.command("logtool --store support agent approve chat")
	r.command("go run ./examples/agent")
	r.output(second, 0.5)
	r.command("wc -l support-refunds.txt")
	r.output(fmt.Sprintf("%d support-refunds.txt\n", refunds(t, dir)), 0)
	for _, theme := range themes {
		name := "../docs/kill-" + theme.name + ".svg"
		want := r.svg(theme)
		if *update {
			check(t, os.WriteFile(name, []byte(want), 0o644))
		}
		got, err := os.ReadFile(name)
		check(t, err)
		if string(got) != want {
			t.Errorf("%s differs from a run of the agent: go test ./examples -run Recording -update", name)
		}
	}
}

// theme has the colours of a recording.
type theme struct{ name, back, text, dim, alarm string }

var themes = []theme{
	{"light", "#f6f8fa", "#1f2328", "#59636e", "#cf222e"},
	{"dark", "#151b23", "#f0f6fc", "#9198a1", "#ff7b72"},
}

// recording is the lines of a terminal, each with the time at which it appears.
type recording struct {
	lines []recordedLine
	now   float64 // seconds
}

type recordedLine struct {
	at          float64
	class, text string
}

func (r *recording) add(class, text string, pause float64) {
	r.now += pause
	r.lines = append(r.lines, recordedLine{r.now, class, text})
}

func (r *recording) command(text string) { r.add("dim", "$ "+text, 1.2) }
func (r *recording) note(text string)    { r.add("alarm", "Killed  ("+text+")", 1.5) }

func (r *recording) output(text string, pause float64) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		r.add("text", strings.TrimRight(line, "\n"), pause)
	}
}

// svg draws the recording. A viewer without animations shows all lines.
func (r *recording) svg(c theme) string {
	const lineHeight, left, width = 19, 16, 640
	var b strings.Builder
	height := lineHeight*len(r.lines) + 2*left
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" role="img">
<title>An agent is killed while a refund waits; the next run pays it once.</title>
<style>
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; fill: %s }
.dim { fill: %s } .alarm { fill: %s; font-weight: bold }
@media (prefers-reduced-motion: no-preference) { text { opacity: 0; animation: appear 0.1s forwards } }
@keyframes appear { to { opacity: 1 } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
`, width, height, c.text, c.dim, c.alarm, c.back)
	for i, line := range r.lines {
		var text strings.Builder
		_ = xml.EscapeText(&text, []byte(line.text)) // a strings.Builder returns no error
		fmt.Fprintf(&b, "<text class=%q x=\"%d\" y=\"%d\" style=\"animation-delay: %.1fs\" xml:space=\"preserve\">%s</text>\n",
			line.class, left, left+13+i*lineHeight, line.at, &text)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

package runlog

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// input adds a message to the input or the context of the turn, if it has more than
// tool results.
func (b *turnBuilder) input(m *event.Message) {
	if len(m.ToolResults()) == len(m.Parts) && len(m.Parts) > 0 {
		return
	}
	switch t := b.turn; {
	case m.Role == event.User && b.e.IsContext() && (t == nil || t.ID.IsZero()):
		b.leading = append(b.leading, leadingContext{t, b.logLine(), *m})
	case t == nil:
		b.log(b.logLine())
	case m.Role == event.User && !b.e.IsContext():
		t.Input = append(t.Input, b.said(m))
	default:
		b.contextOf(t, m)
	}
}

// leadingContext is a context message before the next input. It belongs to the turn of
// the input, or, if there is none, to the turn that it came in.
type leadingContext struct {
	turn    *Turn
	line    LogLine
	message event.Message
}

// lead gives the leading context to turn t.
func (b *turnBuilder) lead(t *Turn) {
	for _, c := range b.leading {
		if t != nil {
			b.contextOf(t, &c.message)
		} else {
			b.logTo(&b.run.Logs, c.line)
		}
	}
	b.leading = nil
}

// endLeading gives the leading context to the turn that it came in, before an event that
// leaves the turn or is no input.
func (b *turnBuilder) endLeading() {
	if len(b.leading) > 0 {
		b.lead(b.leading[0].turn)
	}
}

// output sets the output of the turn. It joins the pieces of one group, but not an orphaned
// piece with a piece that has replaced it.
func (b *turnBuilder) output(m *event.Message) {
	said := b.said(m)
	switch t := b.turn; {
	case t == nil:
	case t.Output != nil && m.Group != "" && t.Output.Group == m.Group && t.outputOnPath == b.onPath:
		t.Output.Parts = append(t.Output.Parts, said.Parts...)
		t.Output.Usage, t.Output.StopReason = m.Usage, cmp.Or(m.StopReason, t.Output.StopReason)
	default:
		said.Parts = slices.Clip(said.Parts)
		t.Output, t.outputOnPath = &said, b.onPath
	}
}

// externalInput notes the text of an external input for the turn that answers it: the
// turn that names it, or the open turn.
func (b *turnBuilder) externalInput() error {
	if b.e.Redacted() {
		return nil
	}
	p, _, err := event.Decode[event.External](b.e)
	var text string
	if err != nil || len(p.Messages) > 0 || json.Unmarshal(p.Value, &text) != nil {
		return err
	}
	if b.turn != nil {
		b.turn.external = cmp.Or(b.turn.external, text)
	} else if p.InputID != "" {
		b.external[p.InputID] = text
	}
	return nil
}

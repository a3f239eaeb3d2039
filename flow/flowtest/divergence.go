package flowtest

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow/internal/playback"
	"github.com/convlog/convlog/projection"
)

// DivergenceError is the first difference between the agent and the recording. Correct
// the agent, or record anew.
type DivergenceError struct {
	// Session is the recorded session: the one of the test, or of a child.
	Session string
	// Turn and Index are the id and the index of the turn.
	Turn  ulid.ULID
	Index int
	// Ordinal is the place of the effect in the turn, as in event.EffectIntent. It is empty
	// if the turn differs after its last effect. Kind and Name are the recorded effect, or
	// the effect of the code if the recording has none.
	Ordinal, Kind, Name string
	// Seq and Type are the event of the recording. File and Line are its place, if the
	// recording is a file.
	Seq  int64
	Type event.Type
	File string
	Line int
	// Member is the difference: effect, arguments, batch, review, request or end; or the
	// path of a member of the event, as in replaytest.Divergence.
	Member string
	// Recorded and Got describe the two sides. Of a request they are empty: Diff has the
	// different lines, with "-" for the recording and "+" for the code.
	Recorded, Got string
	Diff          string
}

func (d *DivergenceError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "session %q: turn %d (%s)", d.Session, d.Index, d.Turn)
	if d.Ordinal != "" {
		fmt.Fprintf(&b, ", effect %s", d.Ordinal)
		if d.Kind != "" {
			fmt.Fprintf(&b, ", %s %q", d.Kind, d.Name)
		}
	}
	fmt.Fprintf(&b, ": %s\n", d.summary())
	fmt.Fprintf(&b, "\trecording: event %d, %s", d.Seq, d.Type)
	if d.File != "" {
		fmt.Fprintf(&b, ", %s:%d", d.File, d.Line)
	}
	if d.Diff != "" {
		return b.String() + "\n" + d.Diff
	}
	fmt.Fprintf(&b, "\n\t- %s\n\t+ %s", d.Recorded, d.Got)
	return b.String()
}

// summary names the difference.
func (d *DivergenceError) summary() string {
	switch d.Member {
	case "effect":
		return "the code asks for another effect"
	case "arguments":
		return "the arguments differ"
	case "batch":
		return "the number of effects differs"
	case "review":
		return "the review differs"
	case "request":
		return "the request differs"
	case "end":
		return "the turn ends in another way"
	}
	return "the event differs in " + d.Member
}

const maxShown = 500 // bytes of a value in a divergence

func shorten(text string) string {
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

// divergence is a divergence at an effect of the running turn; x is nil if the recording
// has no such effect.
func (p *player) divergence(ordinal string, x *effect) *DivergenceError {
	d := &DivergenceError{Session: p.tape.session, Turn: p.turn.id, Index: p.turn.start.Index, Ordinal: ordinal}
	if x != nil {
		d.Kind, d.Name, d.Seq, d.Type = x.kind(), x.name(), x.seq, x.recordType()
	}
	return d
}

// compare compares the effects that the code asks for with the recorded ones.
func (p *player) compare(s *step, b *playback.Batch) *DivergenceError {
	first := &b.Calls[0]
	isWait := first.Kind == "new "+kindWait
	if s.patch != "" || (s.wait != nil) != isWait || s.wait != nil && p.text(s.name()) != p.text(first.Name) {
		return p.otherStep(s, first)
	}
	if s.wait != nil {
		return nil
	}
	for i := range min(len(s.effects), len(b.Calls)) {
		if d := p.compareEffect(s.effects[i], &b.Calls[i]); d != nil {
			return d
		}
	}
	if len(s.effects) == len(b.Calls) && s.many == b.Many {
		return nil
	}
	d := p.divergence(first.Ordinal, s.effects[0])
	d.Member, d.Recorded, d.Got = "batch", s.list(), listCalls(b)
	return d
}

// otherStep is the divergence of a step that is another one in the recording.
func (p *player) otherStep(s *step, c *playback.Call) *DivergenceError {
	d := p.divergence(c.Ordinal, nil)
	d.Member, d.Kind, d.Name, d.Seq, d.Type = "effect", s.kind(), s.name(), s.first, s.recordType()
	d.Recorded, d.Got = s.describe(), describe(c)
	return d
}

// list lists the effects of a step.
func (s *step) list() string {
	names := make([]string, len(s.effects))
	for i, x := range s.effects {
		names[i] = fmt.Sprintf("%q", x.name())
	}
	return listing(names, s.many)
}

func listCalls(b *playback.Batch) string {
	names := make([]string, len(b.Calls))
	for i := range b.Calls {
		names[i] = fmt.Sprintf("%q", b.Calls[i].Name)
	}
	return listing(names, b.Many)
}

func listing(names []string, many bool) string {
	if !many {
		return names[0] + ", not in a batch"
	}
	return fmt.Sprintf("%d: %s", len(names), strings.Join(names, ", "))
}

// compareEffect compares an effect with its record.
func (p *player) compareEffect(x *effect, c *playback.Call) *DivergenceError {
	d := p.divergence(c.Ordinal, x)
	model := c.Kind == kindModel && p.tape.imported // a transcript has no requests
	switch {
	case x.kind() != "" && x.kind() != c.Kind, p.text(x.name()) != p.text(c.Name) && !model:
		d.Member = "effect"
		recorded := playback.Call{Kind: x.kind(), Name: x.name(), Arguments: x.arguments()}
		if recorded.Kind == "" {
			recorded.Kind = c.Kind
		}
		d.Recorded, d.Got = describe(&recorded), describe(c)
		return d
	case !p.sameArguments(x, c.Arguments) && !model:
		d.Member, d.Recorded, d.Got = "arguments", shorten(string(orNull(x.arguments()))), shorten(string(orNull(c.Arguments)))
		return d
	}
	return p.compareReview(x, c)
}

// sameArguments compares arguments by their digest, and then by their text.
func (p *player) sameArguments(x *effect, got jsontext.Value) bool {
	nonce, digest := "", event.Digest("")
	if x.review != nil {
		nonce, digest = x.review.Nonce, x.review.ArgumentsDigest
	} else {
		nonce, digest = x.intent.Nonce, x.intent.ArgumentsDigest
	}
	if d, err := event.ArgumentsDigest(nonce, orNull(got)); err == nil && d == digest {
		return true
	}
	return p.text(canonical(x.arguments())) == p.text(canonical(got))
}

func orNull(v jsontext.Value) jsontext.Value {
	if len(v) == 0 {
		return jsontext.Value("null")
	}
	return v
}

// canonical is the canonical text of a value, or its bytes if it is no JSON.
func canonical(v jsontext.Value) string {
	if c, err := projection.Canonical(orNull(v)); err == nil {
		return string(c)
	}
	return string(v)
}

// compareReview compares the review of an effect.
func (p *player) compareReview(x *effect, c *playback.Call) *DivergenceError {
	recorded, got := "no review", "no review"
	if r := x.review; r != nil {
		recorded = reviewText(r.Prompt, r.Detail, r.Lapse)
	}
	if r := c.Review; r != nil {
		got = reviewText(r.Prompt, r.Detail, r.Lapse)
	}
	if p.text(recorded) == p.text(got) {
		return nil
	}
	d := p.divergence(c.Ordinal, x)
	d.Member, d.Recorded, d.Got = "review", recorded, got
	return d
}

func reviewText(prompt string, detail jsontext.Value, lapse event.Lapse) string {
	text := fmt.Sprintf("review %q", prompt)
	if len(detail) > 0 {
		text += ", detail " + shorten(canonical(detail))
	}
	if lapse != "" {
		text += ", lapse " + string(lapse)
	}
	return text
}

// text is a text as it is compared.
func (p *player) text(s string) string {
	if p.options.Normalize == nil {
		return s
	}
	return p.options.Normalize(s)
}

package web

import (
	"context"
	"slices"
	"sync"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/runlog"
)

// outline is the list of the turns of a session.
type outline struct{ Turns []outlineTurn }

// outlineTurn is a turn of an outline.
type outlineTurn struct {
	Link, Gist string
	Facts      []string
	Orphaned   bool
	Failed     bool
	Number     int

	id       string
	from, to int64
	resume   string
}

// mostTurns is the number of turns that a page lists.
const mostTurns = 300

// around returns the turns that a page lists if it begins at an event, and the numbers of turns
// before and after them.
func (o *outline) around(seq int64) (shown []outlineTurn, before, after int) {
	now := slices.IndexFunc(o.Turns, func(t outlineTurn) bool { return t.to >= seq })
	begin := max(0, min(now-mostTurns/3, len(o.Turns)-mostTurns))
	end := min(len(o.Turns), begin+mostTurns)
	return o.Turns[begin:end], begin, len(o.Turns) - end
}

// outlines keeps the outlines of the sessions that were read last.
type outlines struct {
	mu   sync.Mutex
	kept map[string]*keptOutline
	uses int
}

type keptOutline struct {
	head    event.Hash
	outline *outline
	used    int
}

// mostOutlines is the number of outlines in memory.
const mostOutlines = 8

func (k *outlines) get(session string, head event.Hash) *outline {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.kept[session]
	if x == nil || x.head != head {
		return nil
	}
	k.uses++
	x.used = k.uses
	return x.outline
}

func (k *outlines) put(session string, head event.Hash, o *outline) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept == nil {
		k.kept = map[string]*keptOutline{}
	}
	k.uses++
	k.kept[session] = &keptOutline{head, o, k.uses}
	if len(k.kept) <= mostOutlines {
		return
	}
	oldest := ""
	for id, x := range k.kept {
		if oldest == "" || x.used < k.kept[oldest].used {
			oldest = id
		}
	}
	delete(k.kept, oldest)
}

// outline reads the turns of a session.
func (h *Handler) outline(ctx context.Context, s *sessionHead) (*outline, error) {
	if o := h.outlines.get(s.ID, s.row.Head.Hash); o != nil {
		return o, nil
	}
	opts := runlog.Options{Outline: true, NoChildren: true}
	if h.opts.Prices != nil {
		opts.Estimate = h.opts.Prices.Cost
	}
	run, err := runlog.Load(ctx, h.log, s.ID, opts)
	if err != nil {
		return nil, err
	}
	o := &outline{}
	for _, t := range run.Turns {
		o.Turns = append(o.Turns, newOutlineTurn(s, t))
	}
	h.outlines.put(s.ID, s.row.Head.Hash, o)
	return o, nil
}

func newOutlineTurn(s *sessionHead, t *runlog.Turn) outlineTurn {
	x := outlineTurn{Number: t.Index, Orphaned: t.Orphaned, id: "turn-" + itoa(t.From), from: t.From, to: t.To,
		resume: s.Command + " --at-turn " + itoa(int64(t.Index)) + " --before"}
	x.Link = sessionPath(s.ID) + "?from=" + itoa(t.From) + "#" + x.id
	for i := range t.Input {
		if x.Gist == "" {
			x.Gist = transcript.Visible(brief(t.Input[i].Text(), 90))
		}
	}
	calls, failed := 0, 0
	for _, op := range t.Ops {
		if op.Kind != runlog.ToolOp {
			continue
		}
		if calls++; op.Status == runlog.OpFailed {
			failed++
		}
	}
	add := func(text string) {
		if text != "" {
			x.Facts = append(x.Facts, text)
		}
	}
	if t.Ended.After(t.Started) && !event.Dated(t.Started).IsZero() {
		add(htmlpage.Duration(t.Ended.Sub(t.Started)))
	}
	if calls > 0 {
		add(transcript.Count(int64(calls), "call"))
	}
	if failed > 0 {
		add(transcript.Count(int64(failed), "failure"))
	}
	add(htmlpage.Spend(t.Spend))
	if x.Failed = t.Status == event.TurnStatusFailed; x.Failed || t.Orphaned {
		x.resume = ""
	}
	if t.Status != event.TurnStatusCompleted && t.Status != "" {
		add(string(t.Status))
	}
	return x
}

// turn heads the entry that starts a turn.
func (o *outline) turn(x *transcript.Entry) *htmlpage.Turn {
	for i := range o.Turns {
		t := &o.Turns[i]
		if t.from <= x.Event.Seq && x.Event.Seq <= t.to && t.Orphaned == x.Orphaned {
			return &htmlpage.Turn{ID: t.id, Number: t.Number, Facts: t.Facts, Failed: t.Failed, Resume: t.resume}
		}
	}
	return nil
}

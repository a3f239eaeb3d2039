package web

import (
	"cmp"
	"net/http"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/runlog"
)

// timelinePage draws the turns of a session and their operations on an axis of time.
var timelinePage = page{pattern: "/s/{session}/timeline", template: "timeline.html", tab: "Timeline", load: (*Handler).timeline}

// timelineView is the page of a timeline.
type timelineView struct {
	*sessionHead
	Turns          []*timeTurn
	All            int
	Left           int // operations that the page leaves out
	Earlier, Later string
}

// timeTurn is a turn on its own axis, which begins with the turn.
type timeTurn struct {
	Number   int
	Link     string
	Gist     string
	Facts    []string
	Share    float64 // of the largest cost of a turn, in percent
	Orphaned bool
	Failed   bool
	Bars     []timeBar
}

// timeBar is an operation, or the run of a sub-agent, in percent of its turn.
type timeBar struct {
	Name, Link, Took string
	Kind             string // llm, tool, system, run or wait
	Failed           bool
	From, Width      float64
	Depth            int
}

// The bounds of the page.
const (
	timeTurns = 50
	timeBars  = 200 // of all turns
)

func (h *Handler) timeline(r *http.Request) (view, error) {
	s, err := h.head(r)
	if err != nil {
		return view{}, err
	}
	from, err := seqOf(r, "from", 1)
	if err != nil {
		return view{}, err
	}
	opts := runlog.Options{Outline: true}
	if h.opts.Prices != nil {
		opts.Estimate = h.opts.Prices.Cost
	}
	run, err := runlog.Load(r.Context(), h.log, s.ID, opts)
	if err != nil {
		return view{}, err
	}
	v := timelineView{sessionHead: s, All: len(run.Turns)}
	most := 0.0
	for _, t := range run.Turns {
		most = max(most, weight(t.Spend))
	}
	begin := int(min(from, int64(max(1, v.All)))) - 1
	shown := run.Turns[begin:min(begin+timeTurns, v.All)]
	bars := 0
	for _, t := range shown {
		x := newTimeTurn(s, t)
		if most > 0 {
			x.Share = weight(t.Spend) / most * 100
		}
		room := max(0, timeBars-bars)
		if left := len(x.Bars) - room; left > 0 {
			v.Left, x.Bars = v.Left+left, x.Bars[:room]
		}
		bars += len(x.Bars)
		v.Turns = append(v.Turns, x)
	}
	path := sessionPath(s.ID, "timeline") + "?from="
	if begin > 0 {
		v.Earlier = path + itoa(int64(max(1, begin+1-timeTurns)))
	}
	if begin+len(shown) < v.All {
		v.Later = path + itoa(int64(begin+len(shown)+1))
	}
	return view{title: "Timeline · " + s.Title, body: v}, nil
}

func newTimeTurn(s *sessionHead, t *runlog.Turn) *timeTurn {
	failed := t.Status == event.TurnStatusFailed
	row := turnRow{from: t.From, to: t.To, began: millis(t.Started), ended: millis(t.Ended), number: int32(t.Index), orphaned: t.Orphaned, bad: failed, cost: htmlpage.Spend(t.Spend)}
	for i := range t.Input {
		row.gist = cmp.Or(row.gist, htmlpage.Brief(t.Input[i].Text(), 90))
	}
	for _, op := range t.Ops {
		if op.Kind != runlog.ToolOp {
			continue
		}
		if row.calls++; op.Status == runlog.OpFailed {
			row.failed++
		}
	}
	o := newOutlineTurn(s, &row)
	x := &timeTurn{Number: o.Number, Link: o.Link, Gist: o.Gist, Facts: o.Facts, Orphaned: o.Orphaned, Failed: failed}
	axis := timeAxis{t.Started, t.Ended}
	x.add(s.ID, t.Ops, axis, 0)
	for _, p := range t.Pauses {
		x.pause(s.ID, p, axis, 0)
	}
	return x
}

// timeAxis is the time of a turn.
type timeAxis struct{ from, to time.Time }

// place returns the place of a time span, in percent.
func (a timeAxis) place(from, to time.Time) (begin, width float64) {
	all := a.to.Sub(a.from)
	if all <= 0 || event.Dated(from).IsZero() {
		return 0, 0
	}
	percent := func(t time.Time) float64 { return min(100, max(0, float64(t.Sub(a.from))/float64(all)*100)) }
	if to.Before(from) {
		to = a.to // it has no end
	}
	begin = percent(from)
	return begin, percent(to) - begin
}

// add adds operations and the runs below them.
func (x *timeTurn) add(session string, ops []*runlog.Op, axis timeAxis, depth int) {
	for _, op := range ops {
		bar := timeBar{Name: transcript.Visible(htmlpage.Brief(cmp.Or(op.Name, string(op.Kind)), 60)), Kind: string(op.Kind), Failed: op.Status == runlog.OpFailed,
			Link: eventLink(session, op.Seq), Depth: depth, Took: htmlpage.Took(op.Started, op.Ended)}
		bar.From, bar.Width = axis.place(op.Started, op.Ended)
		x.Bars = append(x.Bars, bar)
		for _, p := range op.Pauses {
			x.pause(session, p, axis, depth+1)
		}
		for _, c := range op.Children {
			x.child(c, axis, depth+1)
		}
	}
}

// pause adds a hibernation.
func (x *timeTurn) pause(session string, p *runlog.Pause, axis timeAxis, depth int) {
	bar := timeBar{Name: "waits", Kind: "wait", Link: eventLink(session, p.Seq), Depth: depth, Took: htmlpage.Took(p.Hibernated, p.Resumed)}
	bar.From, bar.Width = axis.place(p.Hibernated, p.Resumed)
	x.Bars = append(x.Bars, bar)
}

// child adds the run of a sub-agent, with its operations.
func (x *timeTurn) child(c *runlog.ChildOp, axis timeAxis, depth int) {
	const deepest = 4
	if c.Run == nil || depth > deepest {
		return
	}
	run := c.Run
	bar := timeBar{Name: transcript.Visible(htmlpage.Brief(cmp.Or(c.Agent, run.Title, c.ID), 60)), Kind: "run", Failed: run.Status == runlog.OpFailed,
		Link: sessionPath(run.Session), Depth: depth, Took: htmlpage.Took(run.Started, run.Ended)}
	bar.From, bar.Width = axis.place(run.Started, run.Ended)
	x.Bars = append(x.Bars, bar)
	for _, t := range run.Turns {
		x.add(run.Session, t.Ops, axis, depth+1)
	}
}

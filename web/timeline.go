package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
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
	Left           int   // operations that the page leaves out
	Cut            int64 // the events of a longer turn that are drawn; 0 if the turns are whole
	Earlier, Later string
}

// timeTurn is a turn on its own axis, which begins with the turn.
type timeTurn struct {
	outlineTurn
	Share  float64 // of the largest cost of a turn, in percent
	Failed bool
	Bars   []timeBar

	axis timeAxis
}

// timeBar is an operation, or the run of a sub-agent, in percent of its turn.
type timeBar struct {
	Name, Link, Took string
	Kind             string // llm, tool, system, run or wait
	Failed           bool
	From, Width      float64
	Depth            int
}

// The bounds of the page. A page has one turn at least.
const (
	timeTurns       = 50
	timeBars        = 200  // of all turns
	timeEvents      = 5000 // of all turns
	timeChildEvents = 1000 // of the run of a sub-agent
	timeDepth       = 4    // of runs of sub-agents
)

func (h *Handler) timeline(r *http.Request) (view, error) {
	ctx := r.Context()
	s, err := h.head(r)
	if err != nil {
		return view{}, err
	}
	from, err := seqOf(r, "from", 1)
	if err != nil {
		return view{}, err
	}
	o, err := h.outline(ctx, s, false)
	if err != nil {
		return view{}, err
	}
	all := o.rows()
	v := timelineView{sessionHead: s, All: len(all)}
	begin := int(min(from, int64(max(1, v.All)))) - 1
	end := timeEnd(all, begin)
	most := 0.0
	for i := range all {
		most = max(most, all[i].weight)
	}
	for i := range all[begin:end] {
		t := &all[begin+i]
		x := &timeTurn{outlineTurn: newOutlineTurn(s, t), Failed: t.bad, axis: timeAxis{timeOf(t.began), timeOf(t.ended)}}
		if most > 0 {
			x.Share = t.weight / most * 100
		}
		v.Turns = append(v.Turns, x)
	}
	if begin < end {
		if err := h.drawTurns(ctx, &v, all[begin:end]); err != nil {
			return view{}, err
		}
	}
	path := sessionPath(s.ID, "timeline") + "?from="
	if begin > 0 {
		v.Earlier = path + itoa(int64(timeBegin(all, begin)+1))
	}
	if end < v.All {
		v.Later = path + itoa(int64(end+1))
	}
	return view{title: "Timeline · " + s.Title, body: v}, nil
}

// timeEnd returns the end of the turns of a page that begins with a turn.
func timeEnd(all []turnRow, begin int) int {
	end := min(begin+1, len(all))
	for end < len(all) && end < begin+timeTurns && all[end].to-all[begin].from < timeEvents {
		end++
	}
	return end
}

// timeBegin returns the first turn of the page before the one that begins with a turn.
func timeBegin(all []turnRow, end int) int {
	begin := end - 1
	for begin > 0 && begin > end-timeTurns && all[end-1].to-all[begin-1].from < timeEvents {
		begin--
	}
	return begin
}

func timeOf(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}

// drawTurns adds the operations of turns.
func (h *Handler) drawTurns(ctx context.Context, v *timelineView, turns []turnRow) error {
	from, to := turns[0].from, turns[len(turns)-1].to
	if to-from >= timeEvents {
		to, v.Cut = from+timeEvents-1, timeEvents
	}
	run, err := runlog.Load(ctx, h.log, v.ID, runlog.Options{Outline: true, NoChildren: true, From: from, To: to})
	if err != nil {
		return err
	}
	d := timeDrawer{h: h, ctx: ctx, room: timeBars}
	at := func(seq int64) *timeTurn {
		i, _ := slices.BinarySearchFunc(turns, seq, func(t turnRow, seq int64) int { return cmp.Compare(t.to, seq) })
		return v.Turns[min(i, len(turns)-1)]
	}
	for _, t := range run.Turns {
		for _, op := range t.Ops {
			d.op(at(op.Seq), v.ID, op, 0)
		}
		for _, p := range t.Pauses {
			d.pause(at(p.Seq), v.ID, p, 0)
		}
	}
	v.Left = d.left
	return ctx.Err()
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

// timeDrawer draws operations while there is room.
type timeDrawer struct {
	h    *Handler
	ctx  context.Context
	room int // bars
	left int // operations without room
}

func (d *timeDrawer) add(x *timeTurn, bar timeBar, from, to time.Time) {
	if d.room == 0 {
		d.left++
		return
	}
	d.room--
	bar.Took = htmlpage.Took(from, to)
	bar.From, bar.Width = x.axis.place(from, to)
	x.Bars = append(x.Bars, bar)
}

// op draws an operation and the runs below it.
func (d *timeDrawer) op(x *timeTurn, session string, op *runlog.Op, depth int) {
	d.add(x, timeBar{Name: transcript.Visible(htmlpage.Brief(cmp.Or(op.Name, string(op.Kind)), 60)), Kind: string(op.Kind), Failed: op.Status == runlog.OpFailed,
		Link: eventLink(session, op.Seq), Depth: depth}, op.Started, op.Ended)
	for _, p := range op.Pauses {
		d.pause(x, session, p, depth+1)
	}
	for _, c := range op.Children {
		d.child(x, c, depth+1)
	}
}

// pause draws a hibernation.
func (d *timeDrawer) pause(x *timeTurn, session string, p *runlog.Pause, depth int) {
	d.add(x, timeBar{Name: "waits", Kind: "wait", Link: eventLink(session, p.Seq), Depth: depth}, p.Hibernated, p.Resumed)
}

// child draws the run of a sub-agent, with the first of its operations.
func (d *timeDrawer) child(x *timeTurn, c *runlog.ChildOp, depth int) {
	if c.SessionID == "" || c.Inherited || depth > timeDepth {
		return
	}
	if d.room == 0 {
		d.left++
		return
	}
	row, err := d.h.rows.one(d.ctx, c.SessionID, true)
	if err != nil {
		return // its session is missing
	}
	d.add(x, timeBar{Name: transcript.Visible(htmlpage.Brief(cmp.Or(c.Agent, row.KnownTitle(), c.ID), 60)), Kind: "run", Failed: c.State == event.ChildFailed,
		Link: sessionPath(row.ID), Depth: depth}, row.First(), row.Last())
	run, err := runlog.Load(d.ctx, d.h.log, row.ID, runlog.Options{Outline: true, NoChildren: true, Own: true, From: row.At + 1, To: row.At + timeChildEvents})
	if err != nil {
		return // the page of the session says why
	}
	for _, t := range run.Turns {
		for _, op := range t.Ops {
			d.op(x, row.ID, op, depth+1)
		}
	}
}

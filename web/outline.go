package web

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/runlog/stats"
)

// outline is the list of the turns of a session. It has a small row for each turn, so that a long
// session fits.
type outline struct {
	mu    sync.Mutex
	turns []turnRow
	read  int64 // seq of the newest event that was read
}

// turnRow is a turn of an outline.
type turnRow struct {
	from, to      int64 // to is the seq before the next turn
	began, ended  int64 // milliseconds; 0 if unknown
	calls, failed int32
	number        int32
	orphaned, bad bool
	gist, cost    string
	weight        float64 // of the cost
}

// outlineTurn is a turn as a page lists it.
type outlineTurn struct {
	ID, Link, Gist string
	Number         int
	Facts          []string
	Orphaned       bool
	resume         string
}

// mostTurns is the number of turns that a page lists.
const mostTurns = 300

// around returns the turns that a page lists if it begins at an event, and the numbers of turns
// before and after them.
func (o *outline) around(s *sessionHead, seq int64) (shown []outlineTurn, before, after int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := max(0, slices.IndexFunc(o.turns, func(t turnRow) bool { return t.to >= seq }))
	begin := max(0, min(now-mostTurns/3, len(o.turns)-mostTurns))
	end := min(len(o.turns), begin+mostTurns)
	for i := range o.turns[begin:end] {
		shown = append(shown, newOutlineTurn(s, &o.turns[begin+i]))
	}
	return shown, begin, len(o.turns) - end
}

// rows returns the turns.
func (o *outline) rows() []turnRow {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.turns[:len(o.turns):len(o.turns)]
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

// The bounds of the outlines in memory, and of their turns.
const (
	mostOutlines = 8
	mostKept     = 200_000
)

func (k *outlines) get(session string, head event.Hash, stale bool) *outline {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.kept[session]
	if x == nil || x.head != head && !stale {
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
	turns := 0
	for _, x := range k.kept {
		turns += len(x.outline.turns)
	}
	if len(k.kept) <= mostOutlines && (turns <= mostKept || len(k.kept) == 1) {
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

// whole loads the top of the pages of a session, and its outline. If stale is set, they may lack
// the newest events, so that a session that grows is not read again with each event.
func (h *Handler) whole(ctx context.Context, session string, stale bool) (*sessionHead, *outline, error) {
	s, err := h.headOf(ctx, session, stale)
	if err != nil {
		return nil, nil, err
	}
	o, err := h.outline(ctx, s, stale)
	return s, o, err
}

// patience is how long the page of a conversation waits for the read of the whole session.
const patience = 600 * time.Millisecond

// soon is whole, unless that takes long. Then the outline is nil, the top has few facts, and the
// read goes on for the next request.
func (h *Handler) soon(ctx context.Context, session string) (*sessionHead, *outline, error) {
	type result struct {
		s *sessionHead
		o *outline
	}
	row, known, err := h.rows.begin(ctx, session, false)
	if err != nil {
		return nil, nil, err
	}
	s := h.newHead(ctx, row)
	if known {
		if o := h.outlines.get(session, row.Head.Hash, false); o != nil {
			return s, o, nil
		}
	}
	read := h.reads.DoChan(session+" "+row.Head.Hash.String(), func() (any, error) {
		s, o, err := h.whole(context.WithoutCancel(ctx), session, false)
		return result{s, o}, err
	})
	timer := time.NewTimer(h.patience)
	defer timer.Stop()
	select {
	case r := <-read:
		x := r.Val.(result)
		return x.s, x.o, r.Err
	case <-timer.C:
		return s, nil, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
}

// outline reads the turns of a session. If stale is set, the outline may lack the newest ones.
func (h *Handler) outline(ctx context.Context, s *sessionHead, stale bool) (*outline, error) {
	if o := h.outlines.get(s.ID, s.row.Head.Hash, stale); o != nil {
		return o, nil
	}
	o := &outline{read: s.Head}
	var report stats.CostReport
	var reads errgroup.Group
	reads.Go(func() error {
		for x, err := range transcript.Read(ctx, h.log, s.ID, eventlog.All()) {
			if err != nil {
				return err
			}
			o.add(x)
		}
		return nil
	})
	reads.Go(func() (err error) {
		report, err = stats.LoadCost(ctx, h.log, s.ID, stats.CostOptions{Prices: h.opts.Prices})
		return err
	})
	if err := reads.Wait(); err != nil {
		return nil, err
	}
	o.addCosts(report.Turns)
	h.outlines.put(s.ID, s.row.Head.Hash, o)
	return o, nil
}

// add adds an entry to the turn that it belongs to.
func (o *outline) add(x *transcript.Entry) {
	if x.StartsTurn {
		t := turnRow{from: x.Event.Seq, number: int32(x.Turn), orphaned: x.Orphaned, gist: htmlpage.Brief(x.Message.Text(), 72), began: millis(x.Event.Timestamp)}
		if n := len(o.turns); n > 0 {
			o.turns[n-1].to = x.Event.Seq - 1
		}
		o.turns = append(o.turns, t)
	}
	if len(o.turns) == 0 {
		return
	}
	t := &o.turns[len(o.turns)-1]
	t.to = max(t.to, x.Last)
	if x.IsMessage && !x.IsContext() {
		t.ended = max(t.ended, millis(x.Event.Timestamp))
	}
	t.calls += int32(len(x.Message.ToolCalls()))
	for _, r := range x.Results {
		t.to, t.ended = max(t.to, r.Seq), max(t.ended, millis(r.At))
		if r.Part.IsError {
			t.failed++
		}
	}
	if end, ok, err := event.Decode[event.TurnCompletion](&x.Event); ok && err == nil && end.Status == event.TurnStatusFailed {
		t.bad = true
	}
}

func millis(t time.Time) int64 {
	if event.Dated(t).IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// addCosts adds the costs of the turns. A turn of the costs begins with its turn_started, which
// comes before or after its first message.
func (o *outline) addCosts(costs []stats.TurnSpend) {
	for _, c := range costs {
		i, _ := slices.BinarySearchFunc(o.turns, c.Seq, func(t turnRow, seq int64) int { return cmp.Compare(t.to, seq) })
		if i+1 < len(o.turns) && int(o.turns[i].number) != c.Index && int(o.turns[i+1].number) == c.Index {
			i++
		}
		if i < len(o.turns) && int(o.turns[i].number) == c.Index {
			o.turns[i].cost, o.turns[i].weight = htmlpage.Spend(c.Spend), weight(c.Spend)
		}
	}
}

func newOutlineTurn(s *sessionHead, t *turnRow) outlineTurn {
	x := outlineTurn{ID: "turn-" + itoa(t.from), Gist: transcript.Visible(t.gist), Number: int(t.number), Orphaned: t.orphaned}
	x.Link = sessionPath(s.ID) + "?from=" + itoa(t.from) + "#" + x.ID
	if !t.orphaned {
		x.resume = s.Command + " --at-turn " + strconv.Itoa(x.Number) + " --before"
	}
	add := func(text string) {
		if text != "" {
			x.Facts = append(x.Facts, text)
		}
	}
	if t.began > 0 && t.ended > t.began {
		add(htmlpage.Duration(time.Duration(t.ended-t.began) * time.Millisecond))
	}
	if t.calls > 0 {
		add(transcript.Count(int64(t.calls), "call"))
	}
	if t.failed > 0 {
		add(transcript.Count(int64(t.failed), "failure"))
	}
	add(t.cost)
	if t.bad {
		add("failed")
	}
	return x
}

// head heads the entry that starts a turn. A turn that is newer than the outline is added.
func (o *outline) head(s *sessionHead, x *transcript.Entry) *htmlpage.Turn {
	o.mu.Lock()
	defer o.mu.Unlock()
	i, found := slices.BinarySearchFunc(o.turns, x.Event.Seq, func(t turnRow, seq int64) int { return cmp.Compare(t.from, seq) })
	if n := len(o.turns); !found && n > 0 && x.Event.Seq > max(o.read, o.turns[n-1].from) {
		x.Turn = int(o.turns[n-1].number) + 1
		o.add(x)
		i, found = n, true
	}
	if !found {
		return nil
	}
	t := newOutlineTurn(s, &o.turns[i])
	return &htmlpage.Turn{ID: t.ID, Number: t.Number, Facts: t.Facts, Failed: o.turns[i].bad, Resume: t.resume}
}

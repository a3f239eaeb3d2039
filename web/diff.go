package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/attempts"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/projection"
)

// diffPage compares two branches, or two sessions: a and b in the query are SESSION or
// SESSION@SEQ.
var diffPage = page{pattern: "/diff", template: "diff.html", load: (*Handler).diff}

// diffView is the page of a comparison.
type diffView struct {
	A, B           string // of the query
	Sides          []*diffSide
	Related        bool   // the sides have a lineage in common
	Ancestor       string // the last common event; empty if there is none
	AncestorLink   string
	From           int // the events of each side before this number are on earlier pages
	Earlier, Later string
	// The comparison of sessions without a lineage in common. Calls are the first that differ, after
	// Same equal ones; no call is empty.
	Calls []htmlpage.Link
	Same  int
	Files []diffFile
}

// diffFile is a file that one of two sessions changed.
type diffFile struct {
	Name, A, B, Text string
	LinkA, LinkB     string
}

// diffSide is a side of a comparison.
type diffSide struct {
	Name, Link string
	Tip        int64
	Turns      int64 // of the session
	Calls      int64
	Failed     int64
	Usage      event.Usage
	Spend      projection.Spend
	Events     int64 // after the last common event
	Cost       string
	Entries    []*htmlpage.Entry
}

// diffEvents is the most events of each side that a page shows.
const diffEvents = 100

// diffPath is the address of a comparison; a seq of 0 is the head.
func diffPath(a string, seqA int64, b string, seqB int64) string {
	name := func(session string, seq int64) string {
		if seq > 0 {
			return session + "@" + itoa(seq)
		}
		return session
	}
	return "/diff?" + url.Values{"a": {name(a, seqA)}, "b": {name(b, seqB)}}.Encode()
}

// tip parses SESSION or SESSION@SEQ. A session with the whole name is first.
func (h *Handler) tip(ctx context.Context, text string) (fork.Tip, error) {
	_, err := h.log.Head(ctx, text)
	i := strings.LastIndexByte(text, '@')
	if err == nil || i < 0 {
		return fork.Tip{Session: text}, err
	}
	seq, bad := strconv.ParseInt(text[i+1:], 10, 64)
	if bad != nil || seq < 1 {
		return fork.Tip{}, err
	}
	return fork.Tip{Session: text[:i], Seq: seq}, nil
}

func (h *Handler) diff(r *http.Request) (view, error) {
	ctx, q := r.Context(), r.URL.Query()
	v := diffView{A: q.Get("a"), B: q.Get("b")}
	if v.A == "" || v.B == "" {
		return view{title: "Compare", body: v}, nil
	}
	from, err := seqOf(r, "from", 1)
	if err != nil {
		return view{}, err
	}
	v.From = int(min(from, 1<<31))
	tips := make([]fork.Tip, 2)
	for i, text := range []string{v.A, v.B} {
		if tips[i], err = h.tip(ctx, text); err != nil {
			return view{}, err
		}
		side, err := h.diffSide(ctx, tips[i])
		if err != nil {
			return view{}, err
		}
		v.Sides = append(v.Sides, side)
	}
	d, err := fork.Diff(ctx, h.log, tips[0], tips[1])
	switch {
	case err == nil:
		err = h.sides(ctx, &v, &d)
	case errors.Is(err, fork.Error("unrelated")):
		err = h.attempts(ctx, &v, tips[0].Session, tips[1].Session)
	}
	return view{title: "Compare " + v.Sides[0].Name + " with " + v.Sides[1].Name, body: v}, err
}

// diffSide describes the session of a side.
func (h *Handler) diffSide(ctx context.Context, tip fork.Tip) (*diffSide, error) {
	row, err := h.rows.one(ctx, tip.Session, false)
	if err != nil {
		return nil, err
	}
	x := &diffSide{Name: htmlpage.SessionName(row), Link: sessionPath(row.ID), Tip: tip.Seq, Failed: row.Failed, Spend: row.Spend()}
	if row.IsRead() {
		x.Turns, x.Calls, x.Usage = row.Turns, row.Calls, row.Usage
	}
	if x.Tip == 0 {
		x.Tip = row.Head.Seq
	}
	return x, nil
}

// sides reads the events of both sides.
func (h *Handler) sides(ctx context.Context, v *diffView, d *fork.Difference) error {
	v.Related = true
	if d.Ancestor.Seq > 0 {
		v.Ancestor, v.AncestorLink = transcript.At(d.Ancestor.Seq), eventLink(d.Ancestor.Session, d.Ancestor.Seq)
	}
	more := false
	for i, side := range []*fork.Side{&d.A, &d.B} {
		x := v.Sides[i]
		x.Events, x.Tip = side.Len(), side.Tip.Seq
		if err := h.entriesOf(ctx, v, x, side); err != nil {
			return err
		}
		more = more || x.Events >= int64(v.From+diffEvents)
	}
	address := func(from int) string {
		return "/diff?" + url.Values{"a": {v.A}, "b": {v.B}, "from": {strconv.Itoa(from)}}.Encode()
	}
	if v.From > 1 {
		v.Earlier = address(max(1, v.From-diffEvents))
	}
	if more {
		v.Later = address(v.From + diffEvents)
	}
	return nil
}

// entriesOf reads the entries of a side, and the costs of all of its events.
func (h *Handler) entriesOf(ctx context.Context, v *diffView, x *diffSide, side *fork.Side) error {
	j := newJoiner(newView(side.Tip.Session, ""), diffEvents, &x.Entries)
	n, cost := 0, event.Cost(0)
	for e, err := range side.Events(ctx) {
		if err != nil {
			return err
		}
		cost = cost.Add(e.Cost)
		if n++; n < v.From || n >= v.From+diffEvents {
			continue
		}
		if err := j.Add(transcript.NewEntry(&e, false)); err != nil {
			return err
		}
	}
	x.Cost = htmlpage.Spend(projection.Spend{Cost: cost})
	return j.Flush()
}

// attempts compares the calls and files of two sessions without a lineage in common.
func (h *Handler) attempts(ctx context.Context, v *diffView, a, b string) error {
	c, err := attempts.Compare(ctx, h.log, h.rows.catalog, a, b)
	if err != nil {
		return err
	}
	if c.First != nil {
		v.Same, v.Calls = c.First.Same, []htmlpage.Link{callLink(a, c.First.A), callLink(b, c.First.B)}
	}
	for _, f := range c.Files {
		x := diffFile{Name: transcript.Visible(f.Path), A: changedLines(f.A), B: changedLines(f.B), Text: f.Text}
		if f.A != nil {
			x.LinkA = sessionPath(a, "files") + "?" + url.Values{"file": {f.A.Path}}.Encode()
		}
		if f.B != nil {
			x.LinkB = sessionPath(b, "files") + "?" + url.Values{"file": {f.B.Path}}.Encode()
		}
		v.Files = append(v.Files, x)
	}
	return nil
}

// callLink names a call, and leads to it.
func callLink(session string, c *attempts.Call) htmlpage.Link {
	if c == nil {
		return htmlpage.Link{Name: "no more calls"}
	}
	return htmlpage.Link{Name: transcript.Visible(htmlpage.Brief(c.Tool+" "+string(c.Arguments), 300)), Href: eventLink(session, c.Seq)}
}

// changedLines are the lines that a session added and removed; a dash if it did not change the file.
func changedLines(f *files.File) string {
	if f == nil {
		return "–"
	}
	return "+" + strconv.Itoa(f.Added) + " −" + strconv.Itoa(f.Removed)
}

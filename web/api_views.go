package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/answers"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/runlog/stats"
	"github.com/convlog/convlog/search"
)

// atOf reads the parameter at: the seq as of which a session is shown; missing without one.
func atOf(r *http.Request, missing int64) (int64, error) { return seqOf(r, "at", missing) }

// apiHead is the head of the session of a request. known says that the client has it already, and
// is answered.
func (h *Handler) apiHead(w http.ResponseWriter, r *http.Request) (head event.Head, known bool, err error) {
	head, err = h.log.Head(r.Context(), r.PathValue("session"))
	return head, err == nil && isKnown(w, r, head), err
}

// messagePart is a part of a history.
type messagePart struct {
	Messages []jsontext.Value `json:"messages"`
	Seq      int64            `json:"seq"` // as of this event
	Next     string           `json:"next,omitzero"`
}

func (h *Handler) apiHistory(w http.ResponseWriter, r *http.Request) error {
	head, known, err := h.apiHead(w, r)
	if err != nil || known {
		return err
	}
	at, err := atOf(r, head.Seq)
	if err != nil {
		return err
	}
	part, err := newPart(r)
	if err != nil {
		return err
	}
	place, err := cursorOf(r)
	if err != nil {
		return err
	}
	skip := 0
	if place != "" {
		if _, err := fmt.Sscanf(place, "%d %d", &at, &skip); err != nil {
			return errCursor
		}
	}
	out, n := messagePart{Seq: at}, 0
	for e, err := range projection.Entries(r.Context(), h.log, r.PathValue("session"), projection.RenderOptions{}, projection.Options{At: at}) {
		if err != nil {
			return err
		}
		if n++; n <= skip {
			continue
		}
		if part.isFull() {
			out.Next = newCursor(r, fmt.Sprintf("%d %d", at, n-1))
			break
		}
		if err := part.add(answers.NewMessage(&e)); err != nil {
			return err
		}
	}
	out.Messages = part.rows
	return reply(w, http.StatusOK, out)
}

func (h *Handler) apiState(w http.ResponseWriter, r *http.Request) error {
	name := r.URL.Query().Get("projection")
	if name == "" {
		name = projection.Session().Name
	}
	set, err := answers.StateSet(name)
	if errors.Is(err, projection.ErrUnknownProjection) {
		return badRequest{"there is no projection " + strconv.Quote(name), "the projections are: " + strings.Join(answers.StateNames(), ", ")}
	}
	if err != nil {
		return err
	}
	head, known, err := h.apiHead(w, r)
	if err != nil || known {
		return err
	}
	at, err := atOf(r, head.Seq)
	if err != nil {
		return err
	}
	loaded, err := projection.LoadSet(r.Context(), h.log, r.PathValue("session"), set, projection.Options{At: at})
	if err != nil {
		return err
	}
	state, err := answers.State(loaded, set)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, state)
}

func (h *Handler) apiTree(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	_, root, err := h.treeOf(ctx, r.PathValue("session"))
	if err != nil {
		return err
	}
	var all []*fork.Node
	for _, n := range root.Walk() {
		all = append(all, n)
	}
	reader := listing.TreeReader{Log: h.log, Catalog: h.rows.catalog, Branches: true, Step: func() {}}
	about, err := reader.Describe(ctx, all)
	if err != nil {
		return err
	}
	sessions := []answers.TreeSession{}
	err = answers.Tree(listing.NewTreeNode(root, about), func(x answers.TreeSession) error {
		sessions = append(sessions, x)
		return nil
	})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"sessions": sessions})
}

func (h *Handler) apiCost(w http.ResponseWriter, r *http.Request) error {
	cost, err := answers.LoadCost(r.Context(), h.log, r.PathValue("session"), stats.CostOptions{Prices: h.opts.Prices})
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, cost)
}

func (h *Handler) apiFiles(w http.ResponseWriter, r *http.Request) error {
	head, known, err := h.apiHead(w, r)
	if err != nil || known {
		return err
	}
	at, err := atOf(r, head.Seq)
	if err != nil {
		return err
	}
	list := files.List{Files: []*files.File{}}
	for c, err := range h.changesTo(r.Context(), r.PathValue("session"), at) {
		if err != nil {
			return err
		}
		list.Add(&c)
	}
	return reply(w, http.StatusOK, map[string]any{"files": list.Files})
}

func (h *Handler) apiVerify(w http.ResponseWriter, r *http.Request) error {
	c, err := h.check(r.Context(), r.PathValue("session"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, answers.NewCheck(c.Session, &c.Report, nil))
}

// statsAnswer are the counts of sessions.
type statsAnswer struct {
	stats.Stats `json:",inline"`
	// Unreadable is the number of sessions that are not counted because they cannot be read.
	Unreadable int `json:"unreadable,omitzero"`
}

func (h *Handler) apiStats(w http.ResponseWriter, r *http.Request) error {
	query, f, err := parseFilters(r.URL.Query(), time.Now())
	if err != nil {
		return err
	}
	h.rows.list.Lock()
	defer h.rows.list.Unlock()
	rows, err := h.rows.read(r.Context())
	if err != nil {
		return err
	}
	if !f.All {
		rows = listing.WithoutState(rows)
	}
	sum, _, left, err := h.count(r, &query, rows)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, statsAnswer{sum, left})
}

// hitPart is a part of the hits of a search.
type hitPart struct {
	Hits []jsontext.Value `json:"hits"`
	// Unreadable is the number of sessions that could not be searched.
	Unreadable int    `json:"unreadable,omitzero"`
	Next       string `json:"next,omitzero"`
}

func (h *Handler) apiSearch(w http.ResponseWriter, r *http.Request) error {
	ctx, q := r.Context(), r.URL.Query()
	query := search.Query{Text: q.Get("q"), Session: q.Get("session")}
	if strings.TrimSpace(query.Text) == "" || len(query.Text) > longestText {
		return badRequest{fmt.Sprintf("q has the words to search for, up to %d bytes", longestText), `send q=words, or q="a phrase"`}
	}
	part, err := newPart(r)
	if err != nil {
		return err
	}
	place, err := cursorOf(r)
	if err != nil {
		return err
	}
	var out hitPart
	var last search.Hit // of the part
	var title string
	var marker *answers.PathMarker
	for hit, err := range search.Events(ctx, h.log, query) {
		switch {
		case err != nil && (hit.Session == "" || query.Session != ""):
			return err
		case err != nil:
			out.Unreadable++
			continue
		case place != "":
			if place == placeOf(&hit) {
				place = ""
			}
			continue
		case part.isFull():
			out.Next = newCursor(r, placeOf(&last))
		}
		if out.Next != "" {
			break
		}
		if hit.Session != last.Session {
			title, marker = listing.Name(ctx, h.log, hit.Session), &answers.PathMarker{Log: h.log, Session: cmp.Or(query.Session, hit.Session)}
		}
		orphaned, err := marker.Orphaned(ctx, &hit.Event)
		if err != nil {
			return err
		}
		if err := part.add(answers.NewHit(hit, title, orphaned)); err != nil {
			return err
		}
		last = hit
	}
	if place != "" {
		return badRequest{"the hit of the cursor is not found any more", "begin again without the cursor"}
	}
	out.Hits = part.rows
	return reply(w, http.StatusOK, out)
}

// placeOf identifies a hit.
func placeOf(hit *search.Hit) string { return itoa(hit.Seq) + " " + hit.Session }

// differencePart is a part of a difference.
type differencePart struct {
	answers.Difference `json:",inline"`
	Events             []jsontext.Value `json:"events"`
	Next               string           `json:"next,omitzero"`
}

func (h *Handler) apiDiff(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	part, err := newPart(r)
	if err != nil {
		return err
	}
	place, err := cursorOf(r)
	if err != nil {
		return err
	}
	skip, _ := strconv.Atoi(place) // the cursor has a number
	var tips [2]fork.Tip
	for i, name := range []string{"a", "b"} {
		text := r.URL.Query().Get(name)
		if text == "" {
			return badRequest{"the parameter " + name + " is missing", "send SESSION or SESSION@SEQ"}
		}
		if tips[i], err = h.tip(ctx, text); err != nil {
			return err
		}
	}
	d, err := fork.Diff(ctx, h.log, tips[0], tips[1])
	if err != nil {
		return err
	}
	out := differencePart{Difference: answers.NewDifference(&d)}
	n := 0
	for i, side := range []*fork.Side{&d.A, &d.B} {
		for e, err := range side.Events(ctx) {
			if err != nil {
				return err
			}
			if n++; n <= skip {
				continue
			}
			if part.isFull() {
				out.Next = newCursor(r, strconv.Itoa(n-1))
				break
			}
			if err := part.add(answers.SideEvent{Side: "ab"[i : i+1], Event: httpapi.NewEvent(&e)}); err != nil {
				return err
			}
		}
		if out.Next != "" {
			break // the other side is in the next part
		}
	}
	out.Events = part.rows
	return reply(w, http.StatusOK, out)
}

func (h *Handler) apiBlob(w http.ResponseWriter, r *http.Request) error {
	h.body(w, r)
	return nil
}

package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/listing"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/search"
)

// searchPage finds text in all sessions.
var searchPage = page{pattern: "/search", template: "search.html", nav: "Search", load: (*Handler).search}

// The bounds of a search.
const (
	mostHits    = 100
	hitsOfOne   = 5
	searchTime  = 10 * time.Second
	hitContext  = 120
	longestText = 1000
)

// searchView is the result of a search.
type searchView struct {
	Query   string
	Session string // the only one that is searched; empty for all
	Groups  []hitGroup
	Hits    int
	More    bool
	Note    string
}

// hitGroup are the hits of one session.
type hitGroup struct {
	Name, Link string
	Hits       []hit
}

type hit struct {
	Link    string
	Seq     int64
	Type    event.Type
	At      time.Time
	Snippet []span
}

// span is a piece of a snippet.
type span struct {
	Text  string
	Match bool
}

func (h *Handler) search(r *http.Request) (view, error) {
	q := r.URL.Query()
	v := searchView{Query: q.Get("q"), Session: q.Get("session")}
	shown := view{title: "Search", query: v.Query, body: &v}
	if strings.TrimSpace(v.Query) == "" {
		return shown, nil
	}
	if len(v.Query) > longestText {
		return shown, badRequest{"the text of a search is too long", "search for a part of it"}
	}
	ctx := r.Context()
	end := time.Now().Add(searchTime)
	query := search.Query{Text: v.Query, Session: v.Session, PerSession: hitsOfOne, Limit: mostHits + 1, Context: hitContext}
	if v.Session != "" {
		query.PerSession = 0
	}
	for found, err := range search.Events(ctx, h.log, query) {
		if err != nil && found.Session == "" {
			return shown, err
		}
		if err != nil {
			v.Note = "Some sessions could not be searched."
			continue
		}
		if v.Hits == mostHits || time.Now().After(end) {
			v.More = true
			break
		}
		v.add(h, r, &found)
	}
	return shown, nil
}

func (v *searchView) add(h *Handler, r *http.Request, found *search.Hit) {
	link := sessionPath(found.Session)
	if n := len(v.Groups); n == 0 || v.Groups[n-1].Link != link {
		name := htmlpage.Brief(listing.Name(r.Context(), h.log, found.Session), 110)
		if name == "" {
			name = found.Session
		}
		v.Groups = append(v.Groups, hitGroup{Name: transcript.Visible(name), Link: link})
	}
	g := &v.Groups[len(v.Groups)-1]
	g.Hits = append(g.Hits, hit{Link: eventLink(found.Session, found.Seq), Seq: found.Seq, Type: found.Type.Name(), At: found.Timestamp, Snippet: spans(found)})
	v.Hits++
}

// spans are the pieces of a snippet.
func spans(found *search.Hit) (all []span) {
	add := func(text string, match bool) {
		if text != "" {
			all = append(all, span{transcript.Visible(text), match})
		}
	}
	if found.Before {
		add("…", false)
	}
	at := 0
	for _, m := range found.Matches {
		add(found.Snippet[at:m[0]], false)
		add(found.Snippet[m[0]:m[1]], true)
		at = m[1]
	}
	add(found.Snippet[at:], false)
	if found.After {
		add("…", false)
	}
	return all
}

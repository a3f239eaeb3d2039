package web

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/internal/listing"
)

// page is a kind of page.
type page struct {
	// pattern is its address, as http.ServeMux has it. A page below /s/{session} is about one
	// session.
	pattern string
	// template is the file in templates that defines "content". session.html has parts of the
	// pages of a session.
	template string
	// nav is its name in the navigation, and tab among the tabs of a session; empty for none.
	nav, tab string
	// load makes the view from a request. Its error becomes a page; see problemOf.
	load func(h *Handler, r *http.Request) (view, error)
}

// view is a page to be shown.
type view struct {
	title string
	query string // in the field of the search
	body  any    // for the template
}

// pages are the pages, in the order of the navigation and of the tabs.
func pages() []page {
	return []page{sessionsPage, searchPage, statsPage, agentsPage, sessionPage, timelinePage, treePage, replayPage, atPage, filesPage, verifyPage, diffPage, eventPage}
}

//go:embed templates/*.html
var templateFiles embed.FS

// rendered is a page with its template.
type rendered struct {
	page
	*template.Template
}

func (h *Handler) addPages() error {
	h.all, h.pages = pages(), map[string]*rendered{}
	for _, p := range append(pages(), page{template: "problem.html"}) {
		t, err := htmlpage.Templates(h.opts.Zone, templateFiles, "templates/session.html", "templates/"+p.template)
		if err != nil {
			return fmt.Errorf("page %s: %w", p.template, err)
		}
		h.pages[p.template] = &rendered{p, t}
		if p.pattern != "" {
			h.mux.HandleFunc("GET "+p.pattern, h.serve(&p))
		}
	}
	h.mux.HandleFunc("GET "+entriesPattern, h.entries)
	h.mux.HandleFunc("GET "+streamPattern, h.stream)
	h.mux.HandleFunc("GET "+bodyPattern, h.body)
	h.mux.HandleFunc("POST "+agentsForms, h.act)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		h.problem(w, r, httpapi.NewProblem(http.StatusNotFound, "there is no such page", "the first page lists all sessions"))
	})
	return nil
}

// serve answers requests for a page.
func (h *Handler) serve(p *page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		leave, ok := h.enter(r.Context(), h.busy)
		if !ok {
			return
		}
		h.work(w, leave, func(w http.ResponseWriter) { h.page(w, r, p) })
	}
}

// page answers a request for a page.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, p *page) {
	v, err := p.load(h, r)
	if errors.Is(err, eventlog.ErrNotFound) {
		var to string
		if to, err = h.resolved(r, err); err == nil {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
	}
	if err != nil {
		h.problem(w, r, problemOf(err))
		return
	}
	h.show(w, r, http.StatusOK, p.template, v)
}

// resolved is the address of a request with whole ids for the beginnings of ids. If they name no
// other sessions, the error is notFound.
func (h *Handler) resolved(r *http.Request, notFound error) (string, error) {
	path, query, changed := r.URL.EscapedPath(), r.URL.Query(), false
	find := func(name string) string {
		id, err := listing.Resolve(r.Context(), h.log, name)
		if err != nil {
			if several := (*eventlog.AmbiguousError)(nil); errors.As(err, &several) {
				notFound = httpapi.NewProblem(http.StatusNotFound, several.Error(), "give more of the id")
			}
			return name
		}
		changed = changed || id != name
		return id
	}
	if name := r.PathValue("session"); name != "" {
		_, below, _ := strings.Cut(strings.TrimPrefix(path, "/s/"), "/")
		if path = sessionPath(find(name)); below != "" {
			path += "/" + below
		}
	}
	for _, key := range []string{"a", "b"} {
		if name := query.Get(key); name != "" {
			query.Set(key, find(name))
		}
	}
	if !changed {
		return "", notFound
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

// show writes a page.
func (h *Handler) show(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	layout := htmlpage.Layout{Title: v.title, Query: v.query, Body: v.body, Forms: name == agentsPage.template && h.opts.Write}
	if layout.Forms {
		w.Header().Set("Referrer-Policy", "same-origin") // else browsers leave Origin out of what a form sends
	}
	for _, p := range h.all {
		if p.nav != "" {
			layout.Nav = append(layout.Nav, htmlpage.Link{Name: p.nav, Href: strings.TrimSuffix(p.pattern, "{$}"), On: p.template == name})
		}
	}
	var b bytes.Buffer
	if err := h.pages[name].ExecuteTemplate(&b, "layout", layout); err != nil {
		httpapi.NewProblem(http.StatusInternalServerError, "the page cannot be written: "+err.Error(), "").Write(w)
		return
	}
	write(w, "text/html; charset=utf-8", status, b.Bytes())
}

// problem answers with a page that names a problem.
func (h *Handler) problem(w http.ResponseWriter, r *http.Request, p *httpapi.Problem) {
	if !wantsPage(r) {
		p.Write(w)
		return
	}
	h.show(w, r, p.Status, "problem.html", view{title: p.Title, body: p})
}

func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// isPublic reports whether a file tells nothing about the log.
func isPublic(path string) bool {
	return path == "/style.css" || path == "/page.js" || path == "/icon.svg"
}

// addFiles serves the style sheet, the script and the icon.
func (h *Handler) addFiles() {
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		text, _ := fs.ReadFile(htmlpage.Assets(), name) // an embedded file
		h.mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) { write(w, kind, http.StatusOK, text) })
	}
}

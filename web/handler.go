package web

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/httpapi"
	"github.com/convlog/convlog/prices"
)

// Options configure a Handler. The zero value serves pages on loopback.
type Options struct {
	// Origins are the origins at which clients reach the handler, as https://log.example.org; those
	// of loopback if empty. A request for another host is refused.
	Origins []string
	// Prices estimate costs; nil estimates nothing.
	Prices *prices.Table
	// Zone is the time zone of times and days; UTC if nil.
	Zone *time.Location
	// Writable opens the store for the sums of sessions, as in stats.CatalogOptions. Later requests
	// and commands read the sums there instead of the sessions.
	Writable func(context.Context) (eventlog.Store, error)
	// Write lets clients of the API append, fork and rewind, and people answer agents on the page
	// /runs. The log must be open for writing.
	Write bool
	// By is who the log names for what people do on the pages.
	By string
	// Token is the token of the handler; a new one if empty.
	Token string
}

// Handler serves the pages and the API of a log. Its methods may be called concurrently.
type Handler struct {
	log      *eventlog.Log
	opts     Options
	guard    *guard
	mux      *http.ServeMux
	all      []page
	pages    map[string]*rendered // by template
	rows     *rows
	outlines outlines
	reads    singleflight.Group // of whole sessions
	patience time.Duration      // see soon
	checks   checks
	heads    *heads
	busy     chan struct{} // requests that work
	waiting  chan struct{} // requests of the API that wait
	streams  chan struct{} // open streams
	unsent   unsent
}

// The most requests that are answered at the same time. The others wait.
const (
	mostRequests = 16
	mostStreams  = 64
)

// New returns a handler over a log, with a new token.
func New(log *eventlog.Log, opts ...Options) (*Handler, error) {
	h := &Handler{log: log, mux: http.NewServeMux(), heads: newHeads(log), busy: make(chan struct{}, mostRequests), waiting: make(chan struct{}, mostWaiting), streams: make(chan struct{}, mostStreams), patience: patience, unsent: unsent{most: mostUnsent}}
	if len(opts) > 0 {
		h.opts = opts[0]
	}
	if h.opts.Zone == nil {
		h.opts.Zone = time.UTC
	}
	h.rows = newRows(log, h.opts)
	var err error
	if h.guard, err = newGuard(h.opts); err != nil {
		return nil, err
	}
	if err := h.addPages(); err != nil {
		return nil, err
	}
	h.addFiles()
	h.addAPI()
	return h, nil
}

// URL is the address of the first page with the token, at an address like 127.0.0.1:8080. The
// host of its name is of this handler alone, so that no other server on this machine gets its
// cookies. With Origins, it is an address of the first one.
func (h *Handler) URL(address string) string { return h.guard.url(address, true) }

// PlainURL is the address by the number of the host, for programs that do not know
// *.localhost.
func (h *Handler) PlainURL(address string) string { return h.guard.url(address, false) }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if p := h.guard.checkOrigin(r); p != nil {
		p.Write(w)
		return
	}
	if isPublic(r.URL.Path) {
		h.mux.ServeHTTP(w, r)
		return
	}
	if h.guard.exchange(w, r) {
		return
	}
	if p := h.guard.authorize(r); p != nil {
		h.refuse(w, r, p)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// enter waits for a place among the requests that work. It returns false if the client has gone.
func (h *Handler) enter(ctx context.Context, among chan struct{}) (leave func(), ok bool) {
	select {
	case among <- struct{}{}:
		return func() { <-among }, true
	case <-ctx.Done():
		return nil, false
	}
}

// writeTime bounds how long a client may take to read an answer.
const writeTime = 20 * time.Second

// write sends an answer that is ready.
func write(w http.ResponseWriter, kind string, status int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // a recorder in a test has none
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has gone
}

// refuse answers a request without authority: a browser gets a page.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, p *httpapi.Problem) {
	if r.Header.Get("Authorization") != "" || !wantsPage(r) {
		p.Write(w)
		return
	}
	h.problem(w, r, p)
}

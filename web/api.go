package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/httpapi"
)

// apiPath is the path of the API.
const apiPath = "/api/v1"

// route is a path of the API with a method.
type route struct {
	pattern string // below apiPath
	// query are the parameters of the query. A request with others is refused.
	query []string
	// serve answers a request. Its error becomes a problem document; see problemOf.
	serve func(h *Handler, w http.ResponseWriter, r *http.Request) error
	// stream says that the answer does not end.
	stream bool
}

// routes are the paths of the API. A test compares them with openapi.json.
func routes() []route {
	listed := []string{"q", "source", "cwd", "model", "since", "until", "all"}
	return []route{
		{pattern: "GET /openapi", serve: (*Handler).apiDocument},
		{pattern: "GET /sessions", query: append(slices.Clone(listed), "sort", "limit", "cursor"), serve: (*Handler).apiSessions},
		{pattern: "GET /live", query: []string{"after"}, serve: (*Handler).apiLiveList, stream: true},
		{pattern: "GET /sessions/{session}", serve: (*Handler).apiSession},
		{pattern: "GET /sessions/{session}/events", query: []string{"after", "limit", "path"}, serve: (*Handler).apiEvents},
		{pattern: "GET /sessions/{session}/live", query: []string{"after"}, serve: (*Handler).apiLive, stream: true},
		{pattern: "GET /sessions/{session}/history", query: []string{"at", "limit", "cursor"}, serve: (*Handler).apiHistory},
		{pattern: "GET /sessions/{session}/state", query: []string{"at", "projection"}, serve: (*Handler).apiState},
		{pattern: "GET /sessions/{session}/tree", serve: (*Handler).apiTree},
		{pattern: "GET /sessions/{session}/cost", serve: (*Handler).apiCost},
		{pattern: "GET /sessions/{session}/files", query: []string{"at"}, serve: (*Handler).apiFiles},
		{pattern: "GET /sessions/{session}/verify", serve: (*Handler).apiVerify},
		{pattern: "GET /search", query: []string{"q", "session", "limit", "cursor"}, serve: (*Handler).apiSearch},
		{pattern: "GET /diff", query: []string{"a", "b", "limit", "cursor"}, serve: (*Handler).apiDiff},
		{pattern: "GET /stats", query: []string{"source", "cwd", "model", "since", "until", "all"}, serve: (*Handler).apiStats},
		{pattern: "GET /blobs/{digest}", serve: (*Handler).apiBlob, stream: true},
		{pattern: "POST /sessions/{session}/events", serve: (*Handler).apiAppend},
		{pattern: "POST /sessions/{session}/fork", serve: (*Handler).apiFork},
		{pattern: "POST /sessions/{session}/rewind", serve: (*Handler).apiRewind},
	}
}

// The most requests of the API that wait, besides mostRequests that are answered.
const mostWaiting = 256

func (h *Handler) addAPI() {
	for _, x := range routes() {
		method, path, _ := strings.Cut(x.pattern, " ")
		h.mux.HandleFunc(method+" "+apiPath+path, h.api(&x))
	}
	h.mux.HandleFunc(apiPath+"/", func(w http.ResponseWriter, r *http.Request) { h.noRoute(r).Write(w) })
}

// noRoute is the problem of a path or a method that the API does not have.
func (h *Handler) noRoute(r *http.Request) *httpapi.Problem {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); strings.HasPrefix(pattern, method+" ") {
			return httpapi.NewProblem(http.StatusMethodNotAllowed, "the path has no method "+r.Method, "send a "+method+"; GET "+apiPath+"/openapi lists all paths")
		}
	}
	return httpapi.NewProblem(http.StatusNotFound, "the API has no such path", "GET "+apiPath+"/openapi lists all paths")
}

// api answers the requests of a route.
func (h *Handler) api(x *route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := x.check(r)
		leave := func() {}
		if err == nil && !x.stream {
			leave, err = h.admit(r.Context())
		}
		switch {
		case err != nil:
			refuse(w, err)
		case x.stream:
			if err := x.serve(h, w, r); err != nil {
				refuse(w, err)
			}
		default:
			h.work(w, leave, func(w http.ResponseWriter) {
				if err := x.serve(h, w, r); err != nil {
					refuse(w, err)
				}
			})
		}
	}
}

// refuse answers a request of the API with a problem.
func refuse(w http.ResponseWriter, err error) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	p.Write(w)
}

// check refuses parameters that the route does not have.
func (x *route) check(r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest{"the query of the address cannot be read: " + err.Error(), "escape the values"}
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(x.query, name) {
			return badRequest{"the path has no parameter " + strconv.Quote(name), cmp.Or(strings.Join(x.query, ", "), "none") + " may be given"}
		}
		if len(q[name]) > 1 {
			return badRequest{"the parameter " + name + " is given twice", "give it once"}
		}
	}
	return nil
}

// admit waits for a place among the requests that work, if few enough wait already.
func (h *Handler) admit(ctx context.Context) (leave func(), err error) {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		return nil, httpapi.NewProblem(http.StatusServiceUnavailable, "the server has too many requests", "send the request again after a second")
	}
	leave, ok := h.enter(ctx, h.busy)
	if !ok {
		return nil, ctx.Err()
	}
	return leave, nil
}

// reply answers a request with JSON.
func reply(w http.ResponseWriter, status int, v any) error {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // a recorder in a test has none
	httpapi.WriteJSON(w, status, v)
	return nil
}

//go:embed openapi.json
var openAPI []byte

func (h *Handler) apiDocument(w http.ResponseWriter, _ *http.Request) error {
	write(w, "application/json", http.StatusOK, openAPI)
	return nil
}

// tag is the ETag of a head.
func tag(head event.Head) string { return fmt.Sprintf(`"%d:%v"`, head.Seq, head.Hash) }

// isKnown sends the ETag of a head, and answers a request of a client that has this head.
func isKnown(w http.ResponseWriter, r *http.Request, head event.Head) bool {
	w.Header().Set("ETag", tag(head))
	for _, known := range strings.Split(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(known), "W/") == tag(head) {
			w.WriteHeader(http.StatusNotModified)
			return true
		}
	}
	return false
}

// The numbers of rows of an answer.
const (
	usualRows = 100
	mostRows  = 1000
)

// limitOf reads the parameter limit.
func limitOf(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return usualRows, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostRows {
		return 0, badRequest{fmt.Sprintf("limit is 1 to %d, not %q", mostRows, text), "leave it out, and follow next"}
	}
	return n, nil
}

// queryDigest identifies a query, so that no cursor continues another one.
func queryDigest(r *http.Request) []byte {
	q := r.URL.Query()
	q.Del("cursor")
	q.Del("limit")
	sum := sha256.Sum256([]byte(r.URL.EscapedPath() + "?" + q.Encode()))
	return sum[:8]
}

// newCursor is the cursor of a place in the rows of a query.
func newCursor(r *http.Request, place string) string {
	return base64.RawURLEncoding.EncodeToString(append(queryDigest(r), place...))
}

// cursorOf is the place of the parameter cursor; empty without one.
func cursorOf(r *http.Request) (place string, err error) {
	text := r.URL.Query().Get("cursor")
	if text == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	digest := queryDigest(r)
	if err != nil || len(raw) <= len(digest) || !bytes.HasPrefix(raw, digest) {
		return "", errCursor
	}
	return string(raw[len(digest):]), nil
}

var errCursor = badRequest{"the cursor is not of this query", "send it with the parameters of the request that it continues, or leave it out to begin again"}

// partBytes ends a part of a list.
const partBytes = 4 << 20

// rowPart are rows of an answer.
type rowPart struct {
	limit, size int
	rows        []jsontext.Value
}

// newPart begins a part with the limit of a request.
func newPart(r *http.Request) (*rowPart, error) {
	limit, err := limitOf(r)
	return &rowPart{limit: limit, rows: []jsontext.Value{}}, err
}

// isFull reports whether no row is added any more.
func (p *rowPart) isFull() bool { return len(p.rows) == p.limit || p.size > partBytes }

func (p *rowPart) add(row any) error {
	text, err := json.Marshal(row, json.Deterministic(true))
	p.rows, p.size = append(p.rows, text), p.size+len(text)
	return err
}

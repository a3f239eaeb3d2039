package mcplog

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/convlog/convlog/internal/httpapi"
)

// Path is the path of the server over HTTP.
const Path = "/mcp"

// mostBody bounds the body of a request.
const mostBody = 1 << 20

// NewToken returns a token that nobody can guess.
func NewToken() string { return rand.Text() + rand.Text() }

// Handler serves clients of this machine that have the token, over HTTP.
func (s *Server) Handler(token string) http.Handler {
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, MaxRequestBodyBytes: mostBody, PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if p := check(r, token); p != nil {
			p.Write(w)
			return
		}
		streamable.ServeHTTP(w, r)
	})
}

// check refuses a request from elsewhere, from a page of a browser, or without the token.
func check(r *http.Request, token string) *httpapi.Problem {
	if p := httpapi.CheckLocal(r); p != nil {
		return p
	}
	given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
		return httpapi.NewProblem(http.StatusUnauthorized, "the request has no token of this server", "send Authorization: Bearer TOKEN, with the token that logtool mcp printed or was given")
	}
	if r.URL.Path != Path {
		return httpapi.NewProblem(http.StatusNotFound, "nothing is served here", "use the path "+Path)
	}
	return nil
}

package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
)

// Problem is a problem document (RFC 9457), the answer to a request that failed.
type Problem struct {
	// Type is about:blank: the status says which kind it is.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is the cause, and Remedy what the client can do.
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitzero"`
	// Rule is the rule that an event breaks.
	Rule event.Rule `json:"rule,omitzero"`
	// Seq and Hash are the head of a session that has another one than the request expects.
	Seq  int64  `json:"seq,omitzero"`
	Hash string `json:"hash,omitzero"`
}

// NewProblem makes a problem document.
func NewProblem(status int, detail, remedy string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Remedy: remedy}
}

func (p *Problem) Error() string {
	if p.Remedy == "" {
		return p.Detail
	}
	return p.Detail + ": " + p.Remedy
}

// Write answers a request with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	text, err := json.Marshal(p)
	if err != nil {
		text = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_, _ = w.Write(text) // the client has gone
}

// WriteJSON answers a request with a value.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		NewProblem(http.StatusInternalServerError, "the answer cannot be encoded: "+err.Error(), "").Write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the client has gone
}

package answers

import (
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/search"
)

// Hit is a hit of a search.
type Hit struct {
	Session   string     `json:"session"`
	Title     string     `json:"title,omitzero"`
	Seq       int64      `json:"seq"`
	Type      event.Type `json:"type"`
	Role      event.Role `json:"role,omitzero"`
	Timestamp time.Time  `json:"time"`
	Orphaned  bool       `json:"orphaned,omitzero"`
	Text      string     `json:"text"`
	// Matches are the ranges of the matches in Text, in bytes.
	Matches [][2]int `json:"matches"`
	Before  bool     `json:"before,omitzero"`
	After   bool     `json:"after,omitzero"`
}

// NewHit is the JSON of a hit in a session with a title.
func NewHit(hit search.Hit, title string, orphaned bool) Hit {
	return Hit{
		Session: hit.Session, Title: title, Seq: hit.Seq, Type: hit.Type, Role: RoleOf(&hit.Event), Timestamp: hit.Timestamp, Orphaned: orphaned,
		Text: hit.Snippet, Before: hit.Before, After: hit.After, Matches: hit.Matches,
	}
}

// RoleOf is the role of a message; empty for another event.
func RoleOf(e *event.Event) event.Role {
	m, _, err := event.Decode[event.Message](e)
	if err != nil {
		return ""
	}
	return m.Role
}

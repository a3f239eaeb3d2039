// Package mark names the members of metadata that the log knows (docs/FORMAT.md,
// chapter 7), and makes the masks of secrets. Other programs read the members with the
// methods of event.Event.
package mark

import "bytes"

// Members of metadata.
const (
	// Broken lists the rules that an imported event breaks.
	Broken = "broken"
	// Repaired lists the repairs of an event; see InvalidUnicode.
	Repaired = "repaired"
	// Repeats marks a raw record with the text of another event.
	Repeats = "repeats"
	// Context marks a message that a program wrote in the user's name.
	Context = "context"
	// TurnMS is the time, in milliseconds, that the turn before took, as the program measured it.
	TurnMS = "turn_ms"
	// ReportedCost is the cost of the session so far, as the program computed it.
	ReportedCost = "reported_cost"
	// Masked lists the rules of the secrets that a mask replaces.
	Masked = "masked"

	// ForkOrigin names the original of a copied event: an event.Origin.
	ForkOrigin = "fork_origin"
	// CopyOf is on a copy's first event: a Copy.
	CopyOf = "copy_of"
	// Inherited marks a copied event; its cost and usage count in the original only.
	Inherited = "inherited"
	// NoHeader marks the first event of a session whose file has no readable header.
	NoHeader = "no_header"
)

// InvalidUnicode is a repair: bytes that are not UTF-8 became U+FFFD.
const InvalidUnicode = "invalid_unicode"

// Copy names the session that another session is a copy of. If the head of the copy is
// before Through, the copy is not finished.
type Copy struct {
	Session string `json:"session_id,omitzero"`
	Through int64  `json:"through,omitzero"`
}

// MayBeIn reports whether metadata that the log stored may have the member, without
// parsing. It is true of all such metadata that has the member.
func MayBeIn(metadata []byte, name string) bool {
	return len(metadata) > 0 && bytes.Contains(metadata, []byte(`"`+name+`"`))
}

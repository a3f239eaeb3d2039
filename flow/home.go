package flow

import (
	"cmp"
	"fmt"

	"github.com/convlog/convlog/projection"
)

// HomeError reports that an open turn, or an input that waits, belongs to another store: this
// store is a copy. Nothing ran. Continue the session in its home, or take it over with TakeOver.
type HomeError struct {
	Session string
	// Home is the id of the store to which the turn or the input belongs. Store is the id of
	// this store, empty if it has none.
	Home, Store string
}

func (e *HomeError) Error() string {
	return fmt.Sprintf("session %q: its open turn or input belongs to store %s, and this copy is store %s: continue the session there, or take it over here (logtool agent take)",
		e.Session, e.Home, cmp.Or(e.Store, "without an id"))
}

// checkHome returns a *HomeError if the open turn of a session, or an input of its inbox,
// belongs to another store than the one with an id. turn reports whether the open turn counts.
func checkHome(session, store string, p *projection.Pending, turn bool) error {
	elsewhere := func(home string) bool { return home != "" && home != store }
	if turn && elsewhere(p.Home) {
		return &HomeError{Session: session, Home: p.Home, Store: store}
	}
	for _, in := range p.Inbox {
		if elsewhere(in.Store) {
			return &HomeError{Session: session, Home: in.Store, Store: store}
		}
	}
	return nil
}

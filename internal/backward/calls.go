// Package backward reads a path of events from its end: it follows the path, and finds the
// tool calls that are pending at the end.
package backward

import "github.com/convlog/convlog/event"

// Calls is the set of tool calls on a path that have no result yet. Feed it
// the messages of the path forward (Add), and, if it does not know a call, older
// messages backward (AddOlder). The newest message that names a call decides.
type Calls struct {
	pending map[string]struct{}
	// answered are calls that have a result, while older messages may be added.
	answered map[string]struct{}
	// Complete says that no older message will be added: answered calls need not be
	// remembered.
	Complete bool
}

// Has reports whether a call is pending, as far as the added messages tell.
func (c *Calls) Has(id string) bool {
	_, ok := c.pending[id]
	return ok
}

// Knows reports whether an added message decides on a call.
func (c *Calls) Knows(id string) bool {
	_, answered := c.answered[id]
	return answered || c.Has(id)
}

// Open adds a call.
func (c *Calls) Open(id string) {
	delete(c.answered, id)
	insert(&c.pending, id)
}

// Answer ends a call.
func (c *Calls) Answer(id string) {
	delete(c.pending, id)
	if !c.Complete {
		insert(&c.answered, id)
	}
}

// AddOlder adds the message before all messages that were added.
func (c *Calls) AddOlder(o *event.Outline) {
	if o == nil {
		return
	}
	for _, call := range o.Calls {
		if !c.Knows(call.ID) {
			insert(&c.pending, call.ID)
		}
	}
	for _, id := range o.Results {
		if !c.Knows(id) {
			insert(&c.answered, id)
		}
	}
}

func insert(set *map[string]struct{}, id string) {
	if *set == nil {
		*set = map[string]struct{}{}
	}
	(*set)[id] = struct{}{}
}

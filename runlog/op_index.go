package runlog

import "github.com/oklog/ulid/v2"

// opIndex has the newest ops by the ids that later events refer to.
type opIndex struct {
	calls   map[string]*Op // by call id
	keys    map[string]*Op // by the key of an effect or a tool execution
	answers map[string]*Op // by group and response id
	waiting map[string]*Op // by "KIND ID": of an approval, a wait or a child
	// starts are the call id and the key of an event that starts an execution.
	starts map[ulid.ULID][2]string
}

func newOpIndex() *opIndex {
	return &opIndex{calls: map[string]*Op{}, keys: map[string]*Op{}, answers: map[string]*Op{}, waiting: map[string]*Op{},
		starts: map[ulid.ULID][2]string{}}
}

// find returns the op of the first id that has one, or nil.
func (x *opIndex) find(ids ...string) *Op {
	for _, id := range ids {
		for _, ops := range []map[string]*Op{x.calls, x.keys, x.answers} {
			if op := ops[id]; op != nil && id != "" {
				return op
			}
		}
	}
	return nil
}

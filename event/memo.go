package event

import (
	"bytes"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// memo has the decoded payload of an event. The copies of the event share the memo.
type memo struct{ decoded atomic.Pointer[decoded] }

// decoded is a pointer to a payload, and a copy of the bytes that it was decoded from.
type decoded struct {
	payload any
	data    []byte
}

// remember makes DecodeKept decode the payload once for e and for the copies that are made
// of e after the call; see sealed.Remember.
func (e *Event) remember() {
	if e.memo == nil {
		e.memo = &memo{}
	}
}

// remembered returns the payload that was decoded from equal data as a T; nil if there is
// none.
func remembered[T any](m *memo, data jsontext.Value) *T {
	if m == nil {
		return nil
	}
	d := m.decoded.Load()
	if d == nil || !bytes.Equal(d.data, data) {
		return nil
	}
	p, _ := d.payload.(*T)
	return p
}

// remember keeps a pointer to a payload, unless the memo has one already.
func (m *memo) remember(payload any, data jsontext.Value) {
	if m == nil || m.decoded.Load() != nil {
		return
	}
	m.decoded.CompareAndSwap(nil, &decoded{payload, bytes.Clone(data)})
}

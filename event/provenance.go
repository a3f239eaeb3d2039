package event

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
)

// Origin is the event that another one is a copy of.
type Origin struct {
	Session string    `json:"session_id,omitzero"`
	ID      ulid.ULID `json:"event_id,omitzero"`
	Seq     int64     `json:"seq,omitzero"`
}

// Origin is the event that e is a copy of. ok is false if e is not a copy, or does
// not name the original.
func (e *Event) Origin() (Origin, bool) {
	value, ok := e.MetadataValue(mark.ForkOrigin)
	if !ok {
		return Origin{}, false
	}
	var o Origin
	return o, json.Unmarshal(value, &o) == nil
}

// Copied reports whether e is a copy of another session's event. A copy shapes no
// tree.
func (e *Event) Copied() bool {
	_, ok := e.MetadataValue(mark.ForkOrigin)
	return ok
}

// CopyOrigin returns the session that a copy which begins with e was made of. If the head
// of the copy is before seq through, the copy is not finished. ok is false if no copy
// begins with e.
func (e *Event) CopyOrigin() (session string, through int64, ok bool) {
	var c mark.Copy
	value, ok := e.MetadataValue(mark.CopyOf)
	ok = ok && json.Unmarshal(value, &c) == nil && c.Session != ""
	return c.Session, c.Through, ok
}

// Inherited reports whether the cost and usage of e count in the original.
func (e *Event) Inherited() bool { return e.hasMark(mark.Inherited) }

// provenance is the metadata of a copy that redaction keeps: it has no content.
type provenance struct {
	Origin    Origin    `json:"fork_origin,omitzero"`
	CopyOf    mark.Copy `json:"copy_of,omitzero"`
	Inherited bool      `json:"inherited,omitzero"`
}

func (e *Event) provenance() (p provenance) {
	decodeMember(e, mark.ForkOrigin, &p.Origin)
	decodeMember(e, mark.CopyOf, &p.CopyOf)
	decodeMember(e, mark.Inherited, &p.Inherited)
	return p
}

// decodeMember sets a value from a member of e's metadata, if it has that shape.
func decodeMember[T any](e *Event, name string, to *T) {
	value, ok := e.MetadataValue(name)
	var v T
	if ok && json.Unmarshal(value, &v, strictIDs) == nil {
		*to = v
	}
}

// maxProvenance bounds how much a copy's provenance may exceed the limit of
// metadata, so that every event can be copied.
const maxProvenance = 4 << 10

// provenanceBytes is how many bytes of e's metadata say that e is a copy. They do
// not count against the limit of metadata, unless there are too many: then it is 0.
func (e *Event) provenanceBytes() (n int) {
	for _, key := range []string{mark.ForkOrigin, mark.CopyOf, mark.Inherited} {
		if value, ok := e.MetadataValue(key); ok {
			n += len(`,"":`) + len(key) + len(value)
		}
	}
	if n > maxProvenance {
		return 0
	}
	return n
}

// keptMetadataKey is the member of kept that holds provenance.
const keptMetadataKey = "metadata"

// withProvenance adds e's provenance to the members that redaction keeps.
func (e *Event) withProvenance(kept []rawjson.Member) ([]rawjson.Member, error) {
	p := e.provenance()
	if p == (provenance{}) {
		return kept, nil
	}
	value, err := json.Marshal(p)
	return append(kept, rawjson.Member{Name: keptMetadataKey, Value: value}), err
}

// keptMetadata is the metadata that redaction kept of a redacted event.
func (e *Event) keptMetadata() jsontext.Value {
	members, err := rawjson.Members(e.Kept())
	if err != nil {
		return nil
	}
	value, _ := rawjson.Value(members, keptMetadataKey)
	return value
}

// erasedLoss is the reason of a lost event that replaces a redacted event.
const erasedLoss = "redacted"

// erased is the description of the replaced redacted event, in the extra member of a
// lost event.
type erased struct {
	Type Type           `json:"type"`
	Kept jsontext.Value `json:"kept"`
}

// SetErased says that the lost event replaces a redacted event of type t; kept are the
// members that the redaction kept. It sets Reason and Extra.
func (l *Loss) SetErased(t Type, kept jsontext.Value) (err error) {
	l.Reason = erasedLoss
	l.Extra, err = json.Marshal(erased{t, kept})
	return err
}

// Effective is the event that a projection folds: the redacted event if e is a lost
// event of a copy that replaces one, else e itself.
func (e *Event) Effective() *Event {
	if e.Type.Name() != Lost {
		return e
	}
	loss, _, err := Decode[Loss](e)
	if err != nil {
		return e
	}
	original, ok := loss.original()
	if !ok {
		return e
	}
	fresh := *e
	fresh.Type, fresh.Data, fresh.rare = original.Type, nil, &rare{redacted: true, kept: original.Kept}
	return &fresh
}

func (l Loss) original() (original erased, ok bool) {
	if l.Reason != erasedLoss || len(l.Extra) == 0 || json.Unmarshal(l.Extra, &original) != nil {
		return original, false
	}
	return original, original.Kept.Kind() == '{' && checkType(original.Type) == nil && original.Type.Erasable()
}

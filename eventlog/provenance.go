package eventlog

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/oklog/ulid/v2"
)

// The metadata of copies (docs/FORMAT.md), which redaction keeps.
const (
	forkOriginKey = "fork_origin"
	copyOfKey     = "copy_of"
	inheritedKey  = "inherited"
)

// provenance is the metadata that says that an event is a copy, and what of it
// counts in the original. It has no content, and is kept.
type provenance struct {
	Origin    copyOrigin `json:"fork_origin,omitzero"`
	CopyOf    copySource `json:"copy_of,omitzero"`
	Inherited bool       `json:"inherited,omitzero"`
}

type copyOrigin struct {
	Session string    `json:"session_id,omitzero"`
	ID      ulid.ULID `json:"event_id,omitzero"`
	Seq     int64     `json:"seq,omitzero"`
}

type copySource struct {
	Session string `json:"session_id,omitzero"`
	Through int64  `json:"through,omitzero"`
}

// provenance reads what e's metadata says of it.
func (e *Event) provenance() (p provenance) {
	into(e, forkOriginKey, &p.Origin)
	into(e, copyOfKey, &p.CopyOf)
	into(e, inheritedKey, &p.Inherited)
	return p
}

// maxProvenance bounds what the metadata of a copy may take above the limit, so
// that every event can be copied.
const maxProvenance = 4 << 10

// provenanceBytes is what the metadata takes that says that e is a copy; 0 where it
// takes more than that needs.
func (e *Event) provenanceBytes() (n int) {
	for _, key := range []string{forkOriginKey, copyOfKey, inheritedKey} {
		if value, ok := e.MetadataValue(key); ok {
			n += len(`,"":`) + len(key) + len(value)
		}
	}
	if n > maxProvenance {
		return 0
	}
	return n
}

// into sets what a member of e's metadata says, if it is of that shape.
func into[T any](e *Event, name string, to *T) {
	value, ok := e.MetadataValue(name)
	var v T
	if ok && json.Unmarshal(value, &v, strictIDs) == nil {
		*to = v
	}
}

// forkOrigin reads which event an event is a copy of.
func (e *Event) forkOrigin() (origin copyOrigin, ok bool) {
	value, ok := e.MetadataValue(forkOriginKey)
	if !ok || json.Unmarshal(value, &origin) != nil {
		return origin, false
	}
	return origin, true
}

// withProvenance adds to what redaction keeps of a payload what it keeps of e's
// metadata.
func (e *Event) withProvenance(kept jsontext.Value) (jsontext.Value, error) {
	p := e.provenance()
	if p == (provenance{}) {
		return kept, nil
	}
	value, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	members, err := splitMembers(kept)
	if err != nil {
		return nil, err
	}
	return joinMembers(append(members, member{quoted: jsontext.Value(`"` + keptMetadataKey + `"`), value: value})), nil
}

// keptMetadataKey is the member of kept that holds metadata.
const keptMetadataKey = "metadata"

// keptMetadata is what redaction left of a redacted event's metadata.
func (e *Event) keptMetadata() jsontext.Value {
	members, err := splitMembers(e.Kept())
	if err != nil {
		return nil
	}
	value, _ := find(members, keptMetadataKey)
	return value
}

// Erased is the redacted event that e, a lost event of a copy, stands for: with
// the type and the kept members of that, and all else as e has it. ok is false
// for any other event.
func (e *Event) Erased() (original Event, ok bool) {
	loss, lost, err := e.Loss()
	if !lost || err != nil {
		return Event{}, false
	}
	what, ok := loss.original()
	if !ok {
		return Event{}, false
	}
	original = *e
	original.Type, original.Data, original.rare = what.Type, nil, &rare{redacted: true, kept: what.Kept}
	return original, true
}

// ErasedLoss is the reason of a lost event that stands for a redacted one.
const ErasedLoss = "redacted"

// erased is what a lost event says, in extra, of the event that it stands for.
type erased struct {
	Type Type           `json:"type"`
	Kept jsontext.Value `json:"kept"`
}

func (l Loss) original() (what erased, ok bool) {
	if l.Reason != ErasedLoss || len(l.Extra) == 0 || json.Unmarshal(l.Extra, &what) != nil {
		return what, false
	}
	info := vocabulary[what.Type.Name()]
	return what, what.Kept.Kind() == '{' && checkType(string(what.Type)) == nil && (info == nil || !info.fixed)
}

package event

import (
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// Payload is the typed content of an event: a struct that package json encodes as
// an object. The types of this package are the vocabulary; a program adds its own
// by giving a struct the method EventType. The type's name must contain a colon:
//
//	type OrderPlaced struct {
//		Order string `json:"order"`
//	}
//
//	func (OrderPlaced) EventType() event.Type { return "shop:order_placed" }
//
// A payload may have two more methods. Validate() error applies the payload's own
// rules; an append refuses an event that breaks one. Blobs() []Digest lists the
// blobs the payload refers to; the log keeps them as long as the event.
type Payload interface {
	// EventType is the type of an event with this payload. It does not use the
	// receiver, except in payloads of several types.
	EventType() Type
}

// validator and blobUser are the optional methods of a Payload.
type (
	validator interface{ Validate() error }
	blobUser  interface{ Blobs() []Digest }
)

// Validate applies the rules of a payload that need no other event. Errors match
// ErrInvalid.
func Validate(p Payload) error {
	if isNil(p) {
		return nilArgument("the payload of Validate")
	}
	v, ok := p.(validator)
	if !ok {
		return nil
	}
	return invalidPayload(v.Validate())
}

// blobsOf lists the blobs a payload refers to, in any order.
func blobsOf(p Payload) []Digest {
	if u, ok := p.(blobUser); ok && !isNil(p) {
		return u.Blobs()
	}
	return nil
}

// New makes an event of a payload and mints an id, so that an append may be
// retried: the event is stored once. New cannot fail. A payload that cannot be
// encoded or breaks a rule is reported by Append, which reads the facts of an event from
// its own copy of the data, after the hook.
func New(p Payload) Event {
	e := Event{ID: NewID()}
	e.encode(p)
	return e
}

// encode fills in e's type, data and blobs.
func (e *Event) encode(p Payload) {
	if isNil(p) {
		e.own().fault = fmt.Errorf("%w: %w", ErrInvalidPayload, nilArgument("the payload of New"))
		return
	}
	e.Type = p.EventType()
	data, err := rawjson.Marshal(p, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		e.own().fault = fmt.Errorf("%w: %s: %w", ErrInvalidPayload, e.Type, err)
		return
	}
	e.Data = data
	if !e.Type.Known() {
		if err := Validate(p); err != nil {
			e.own().fault = err
		}
	}
	if blobs := blobsOf(p); len(blobs) > 0 {
		e.own().blobs = sortDigests(blobs)
	}
}

func isNil(p Payload) bool {
	if p == nil {
		return true
	}
	v := reflect.ValueOf(p)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Payload decodes the payload of a known type, and nil of an unknown one. Errors match
// ErrInvalidPayload, ErrRedacted or ErrVersion.
func (e *Event) Payload() (Payload, error) {
	info, known := vocabulary[e.Type.Name()]
	if !known {
		return nil, nil
	}
	if err := e.decodable(); err != nil {
		return nil, err
	}
	p, err := info.decode(e.Type, e.content())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalidPayload, e.Type, err)
	}
	return p, nil
}

// Decode reads e's payload as a T. ok is false, without an error, if e is of
// another type. A payload version that this program does not know is a
// *VersionError, erased content ErrRedacted, anything else ErrInvalidPayload. Tree and
// control events are decoded from the members that redaction kept.
//
// For a payload of your own, T is a struct, not a pointer. Read older versions
// with an Upcaster.
func Decode[T Payload](e *Event) (payload T, ok bool, err error) {
	if e == nil {
		return payload, false, nilArgument("the event of Decode")
	}
	if !carries[T](e.Type) {
		return payload, false, nil
	}
	payload, err = decode[T](e)
	return payload, true, err
}

// carries reports whether events of type t have a T.
func carries[T Payload](t Type) bool {
	goType := reflect.TypeFor[T]()
	if info, known := vocabulary[t.Name()]; known {
		return info.goType == goType
	}
	if goType.Kind() == reflect.Pointer {
		return false
	}
	var zero T
	return zero.EventType().Name() == t.Name()
}

// decode is apart from Decode, so that an event of another type allocates no T.
func decode[T Payload](e *Event) (payload T, err error) {
	if err := e.decodable(); err != nil {
		return payload, err
	}
	if want := payload.EventType(); !e.Type.Known() && want != e.Type {
		return payload, fmt.Errorf("%s %d of %q: %w", e.Type, e.Seq, e.SessionID, versionOf(e.Type, want))
	}
	if err := unmarshal(e.content(), &payload); err != nil {
		return payload, fmt.Errorf("%s %d of %q: %w: %w", e.Type, e.Seq, e.SessionID, ErrInvalidPayload, err)
	}
	setType(&payload, e.Type)
	return payload, nil
}

// versionOf is the error of an event with another payload version than want.
func versionOf(got, want Type) error {
	if got.Version() > want.Version() {
		return &VersionError{What: string(want.Name()), Got: got.Version(), Max: want.Version()}
	}
	return fmt.Errorf("%w: version %d was not upcast to %d", ErrInvalidPayload, got.Version(), want.Version())
}

// decodable says why an event has no payload that this program can decode.
func (e *Event) decodable() error {
	if err := e.Type.CheckVersion(); err != nil {
		return err
	}
	if e.Redacted() && !e.Type.control() {
		return fmt.Errorf("%s %d of %q: %w", e.Type, e.Seq, e.SessionID, ErrRedacted)
	}
	return nil
}

// content is the payload, or what redaction kept of it.
func (e *Event) content() jsontext.Value {
	if e.Redacted() {
		return e.Kept()
	}
	return e.Data
}

// DecodeKept decodes the members of T from the payload of an event, or from the
// members that redaction kept. Erased members are zero. A newer payload version is a
// *VersionError, another shape ErrInvalidPayload.
func DecodeKept[T any](e *Event) (T, error) {
	p, err := decodeShared[T](e)
	return *p, err
}

// decodeShared is DecodeKept without a copy: other callers may get the same payload. It is
// never nil.
func decodeShared[T any](e *Event) (*T, error) {
	if e == nil {
		return new(T), nilArgument("the event of DecodeKept")
	}
	if err := e.Type.CheckVersion(); err != nil {
		return new(T), err
	}
	data := e.content()
	if p := remembered[T](e.memo, data); p != nil {
		return p, nil
	}
	p := new(T)
	if len(data) > 0 {
		if err := unmarshal(data, p); err != nil {
			return p, fmt.Errorf("%s %d of %q: %w: %w", e.Type, e.Seq, e.SessionID, ErrInvalidPayload, err)
		}
	}
	setType(p, e.Type)
	e.memo.remember(p, data)
	return p, nil
}

// multiType is a payload of several types; a field names the type.
type multiType interface{ setType(t Type) }

func setType(payload any, t Type) {
	if m, ok := payload.(multiType); ok {
		m.setType(t)
	}
}

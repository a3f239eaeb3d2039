package eventlog

import (
	"fmt"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

const (
	maxSessionID = 200
	maxType      = 128
)

// CheckSessionID says why id cannot name a session, with ErrInvalidSession:
// ids are 1 to 200 bytes of UTF-8 without control characters.
func CheckSessionID(id string) error {
	if err := checkSessionID(id); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidSession, clip(id), err)
	}
	return nil
}

func checkSessionID(id string) error { return checkName(id, maxSessionID) }

func checkType(t string) error { return checkName(t, maxType) }

type nameError string

func (e nameError) Error() string { return string(e) }

func checkName(name string, most int) error {
	switch {
	case name == "":
		return nameError("empty")
	case len(name) > most:
		return nameError(fmt.Sprintf("longer than %d bytes", most))
	}
	ascii := true
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return nameError("control character")
		}
		ascii = ascii && name[i] < 0x80
	}
	if ascii {
		return nil
	}
	if !utf8.ValidString(name) {
		return nameError("not UTF-8")
	}
	if strings.ContainsFunc(name, func(r rune) bool { return 0x80 <= r && r <= 0x9f }) {
		return nameError("control character")
	}
	return nil
}

// checkEnvelope validates the parts of an event that every type has, and makes
// its JSON compact.
func (e *Event) checkEnvelope() error {
	if err := checkType(string(e.Type)); err != nil {
		return fmt.Errorf("%w %q: %w", ErrInvalidType, clip(string(e.Type)), err)
	}
	if year := e.Timestamp.UTC().Year(); year < 1 || year > 9999 {
		return fmt.Errorf("%w: year %d", ErrInvalidTimestamp, year)
	}
	if e.Cost < 0 {
		return fmt.Errorf("%w: %v is negative", ErrInvalidCost, e.Cost)
	}
	if err := e.compactMetadata(); err != nil {
		return err
	}
	if err := e.compactData(); err != nil {
		return err
	}
	return e.checkDepth()
}

// MaxDepth is in how many levels the objects and arrays of an event's data may be
// nested, and those of its metadata. What holds data of events, as a snapshot or
// a request does, can then be written and read anywhere.
const MaxDepth = 1024

// checkDepth refuses what is nested too deeply. A snapshot holds what other events
// have said, and some levels around it.
func (e *Event) checkDepth() error {
	most := MaxDepth
	if e.Type.Name() == ProjectionSnapshotted {
		most = 2 * MaxDepth
	}
	if rawjson.Deeper(e.Data, most) {
		return fmt.Errorf("%w: nested in more than %d levels", ErrInvalidData, most)
	}
	if rawjson.Deeper(e.Metadata, MaxDepth) || rawjson.Deeper(e.Extras(), MaxDepth) {
		return fmt.Errorf("%w: nested in more than %d levels", ErrInvalidMetadata, MaxDepth)
	}
	return nil
}

func (e *Event) compactMetadata() error {
	if len(e.Metadata) == 0 {
		e.Metadata = nil
	} else {
		value, err := compact(e.Metadata)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
		}
		if value[0] != '{' {
			return fmt.Errorf("%w: not an object", ErrInvalidMetadata)
		}
		e.Metadata = value
	}
	if n := len(e.Metadata) + len(e.Extras()); n > maxEnvelope && n-e.provenanceBytes() > maxEnvelope {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrInvalidMetadata, n, maxEnvelope)
	}
	return nil
}

// compactData validates the payload. What a constructor encoded is compact.
func (e *Event) compactData() error {
	if e.knownFacts() != nil {
		return nil
	}
	if len(e.Data) == 0 {
		return fmt.Errorf("%w: empty", ErrInvalidData)
	}
	value, err := compact(e.Data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidData, err)
	}
	e.Data = value
	return e.noteFacts()
}

// noteFacts decodes the payload of a known type that no constructor made.
func (e *Event) noteFacts() error {
	blobs := e.Blobs()
	r := e.own()
	r.facts = &facts{data: unsafe.SliceData(e.Data), size: len(e.Data)}
	info, known := vocabulary[e.Type.Name()]
	if known {
		if err := e.Type.CheckVersion(); err != nil {
			return err
		}
		p, err := info.parse(e.Type, e.Data)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInvalidPayload, e.Type, err)
		}
		blobs = append(p.needs(), blobs...)
		r.facts = factsOf(p, e.Data)
	}
	r.blobs = sortDigests(blobs)
	return nil
}

// breaks marks a broken rule in the metadata of an imported event.
func (e *Event) breaks(ruleName string) error {
	broken := []string{}
	if value, ok := e.MetadataValue(brokenKey); ok {
		if err := json.Unmarshal(value, &broken); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrInvalidMetadata, brokenKey, err)
		}
	}
	for _, name := range broken {
		if name == ruleName {
			return nil
		}
	}
	return e.SetMetadata(brokenKey, append(broken, ruleName))
}

// broken are the rules that an import broke and marked.
func (e *Event) broken() (names []string) {
	value, ok := e.MetadataValue(brokenKey)
	if !ok || json.Unmarshal(value, &names) != nil {
		return nil
	}
	return names
}

const brokenKey = "broken"

// AddBlobs notes blobs that the event needs, for types whose payload this
// package does not know.
func (e *Event) AddBlobs(digests ...Digest) error {
	for _, d := range digests {
		if _, err := ParseDigest(string(d)); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidBlob, err)
		}
	}
	r := e.own()
	r.blobs = sortDigests(append(digests, r.blobs...))
	return nil
}

// SetExtras gives the event envelope members of its own, as an object. Names
// of the envelope are refused.
func (e *Event) SetExtras(object jsontext.Value) error {
	value, err := compact(object)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	members, err := splitMembers(value)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	for _, m := range members {
		if knownMember(`"` + m.name + `"`) {
			return fmt.Errorf("%w: member %q is the envelope's own", ErrInvalidMetadata, m.name)
		}
	}
	e.own().extras = value[1 : len(value)-1]
	return nil
}

package event

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
)

// SetMetadata adds a member to e's metadata, or replaces it. The other members
// keep their bytes. value is anything that encodes as JSON; a jsontext.Value is
// stored verbatim. ErrInvalidMetadata means that the value cannot be encoded, or
// that e's metadata is not an object. A stored event does not change in its store.
func (e *Event) SetMetadata(name string, value any) error {
	encoded, err := encodeMetadata(value)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrInvalidMetadata, line.Clip(name), err)
	}
	if _, err := jsontext.AppendQuote(nil, name); err != nil {
		return fmt.Errorf("%w: name %q: %w", ErrInvalidMetadata, line.Clip(name), err)
	}
	members, err := metadataMembers(e.Metadata)
	if err != nil {
		return err
	}
	e.Metadata = rawjson.Object(rawjson.Set(members, name, encoded))
	return nil
}

func encodeMetadata(value any) (jsontext.Value, error) {
	if v, ok := value.(jsontext.Value); ok && rawjson.IsCompact(v) {
		return v, nil
	}
	return json.Marshal(value, json.Deterministic(true), jsontext.PreserveRawStrings(true))
}

// MetadataValue returns one member of e's metadata, or of the metadata that
// redaction kept. ok is false if the member is missing.
func (e *Event) MetadataValue(name string) (value jsontext.Value, ok bool) {
	metadata := e.Metadata
	if len(metadata) == 0 && e.Redacted() {
		metadata = e.keptMetadata()
	}
	members, err := metadataMembers(metadata)
	if err != nil {
		return nil, false
	}
	return rawjson.Value(members, name)
}

// hasMark reports whether a member of e's metadata is true.
func (e *Event) hasMark(name string) bool {
	v, ok := e.MetadataValue(name)
	return ok && string(v) == "true"
}

func metadataMembers(metadata jsontext.Value) ([]rawjson.Member, error) {
	if len(metadata) == 0 {
		return nil, nil
	}
	compact, err := rawjson.Compact(metadata)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	members, err := rawjson.Members(compact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	return members, nil
}

// MergeMetadata adds to own the members of inherited that it lacks. Both are
// objects or empty. Values keep their bytes but for white space.
func MergeMetadata(inherited, own jsontext.Value) (jsontext.Value, error) {
	members, err := metadataMembers(own)
	if err != nil {
		return nil, err
	}
	more, err := metadataMembers(inherited)
	if err != nil {
		return nil, err
	}
	if len(members)+len(more) == 0 {
		return nil, nil
	}
	for _, m := range more {
		if _, taken := rawjson.Value(members, m.Name); !taken {
			members = append(members, m)
		}
	}
	return rawjson.Object(members), nil
}

// Members of metadata that the log knows (docs/FORMAT.md, chapter 7).
const (
	// BrokenKey lists the rules that an imported event breaks.
	BrokenKey = "broken"
	// RepairedKey lists the repairs of an event; see InvalidUnicode.
	RepairedKey = "repaired"
	// RepeatsKey marks a raw record with the text of another event.
	RepeatsKey = "repeats"
	// ContextKey marks a message that a program wrote in the user's name.
	ContextKey = "context"
	// MaskedKey lists the rules of the secrets that a mask replaces; see package secrets.
	MaskedKey = "masked"
)

// InvalidUnicode is a repair: bytes that are not UTF-8 became U+FFFD.
const InvalidUnicode = "invalid_unicode"

// Broken lists the rules that an import broke and marked.
func (e *Event) Broken() (rules []string) {
	value, ok := e.MetadataValue(BrokenKey)
	if !ok || json.Unmarshal(value, &rules) != nil {
		return nil
	}
	return rules
}

// MarkBroken marks a rule that the event breaks, once.
func (e *Event) MarkBroken(rule string) error { return e.mark(BrokenKey, rule) }

// MarkMasked marks a rule of a secret that was masked in the event, once.
func (e *Event) MarkMasked(rule string) error { return e.mark(MaskedKey, rule) }

// Masked reports whether secrets of the event were masked before it was stored.
func (e *Event) Masked() bool {
	_, ok := e.MetadataValue(MaskedKey)
	return ok
}

// Mask is the text that replaces a secret that the rule finds.
func Mask(rule string) string { return maskStart + rule + maskEnd }

const (
	maskStart = "[secret:"
	maskEnd   = "]"
)

// IsMaskOf reports whether masked is text, or is text with masks in the place of parts.
// It may report true for another text that has the same beginning, the same end and the
// same parts between the masks.
func IsMaskOf(masked, text string) bool {
	first, rest, more := cutMask(masked)
	if !more {
		return masked == text
	}
	text, ok := strings.CutPrefix(text, first)
	for ok && more {
		var piece string
		if piece, rest, more = cutMask(rest); !more {
			return strings.HasSuffix(text, piece)
		}
		_, text, ok = strings.Cut(text, piece)
	}
	return ok
}

// cutMask cuts a text around its first mask.
func cutMask(text string) (before, after string, found bool) {
	before, after, found = strings.Cut(text, maskStart)
	if found {
		_, after, found = strings.Cut(after, maskEnd)
	}
	if !found {
		return text, "", false
	}
	return before, after, true
}

// mark adds a text to the list that a member of the metadata is.
func (e *Event) mark(name, text string) error {
	list := []string{}
	if value, ok := e.MetadataValue(name); ok {
		if err := json.Unmarshal(value, &list); err != nil {
			return fmt.Errorf("%w: %q: %w", ErrInvalidMetadata, name, err)
		}
	}
	if slices.Contains(list, text) {
		return nil
	}
	return e.SetMetadata(name, append(list, text))
}

// IsContext reports whether a program wrote the message in the user's name, as
// instructions and surroundings are: no view shows it as the user's words.
func (e *Event) IsContext() bool { return e.hasMark(ContextKey) }

// Repeats reports whether e is a raw record with the text of another event.
func (e *Event) Repeats() bool { return e.hasMark(RepeatsKey) }

// SetExtras gives e envelope members of the caller's own, as an object. Names of
// the envelope are refused with ErrInvalidMetadata.
func (e *Event) SetExtras(object jsontext.Value) error {
	value, err := rawjson.Compact(object)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	members, err := rawjson.Members(value)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidMetadata, err)
	}
	for _, m := range members {
		if line.KnownMember(m.Name) {
			return fmt.Errorf("%w: member %q belongs to the envelope", ErrInvalidMetadata, m.Name)
		}
	}
	e.own().extras = value[1 : len(value)-1]
	return nil
}

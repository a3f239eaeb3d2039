package event

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/mark"
	"github.com/convlog/convlog/internal/rawjson"
)

// SetMetadata adds a member to e's metadata, or replaces it. The other members
// keep their bytes. value is anything that encodes as JSON; a jsontext.Value is
// stored verbatim. Rule("metadata") means that the value cannot be encoded, or
// that e's metadata is not an object. A stored event does not change in its store.
func (e *Event) SetMetadata(name string, value any) error {
	encoded, err := encodeMetadata(value)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", errMetadata, line.Clip(name), err)
	}
	if _, err := jsontext.AppendQuote(nil, name); err != nil {
		return fmt.Errorf("%w: name %q: %w", errMetadata, line.Clip(name), err)
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
	if lacks(metadata, name) {
		return nil, false
	}
	members, err := metadataMembers(metadata)
	if err != nil {
		return nil, false
	}
	return rawjson.Value(members, name)
}

// lacks reports that an object has no member with the name, by its bytes: in a name without an escape
// and without invalid UTF-8, they are the bytes of the name.
func lacks(object jsontext.Value, name string) bool {
	return !bytes.Contains(object, []byte(name)) && bytes.IndexByte(object, '\\') < 0 && !strings.ContainsRune(name, utf8.RuneError)
}

// MergeMetadata adds the members of an object that e's metadata lacks. The object may be
// empty. Values keep their bytes but for white space.
func (e *Event) MergeMetadata(object jsontext.Value) error {
	members, err := metadataMembers(e.Metadata)
	if err != nil {
		return err
	}
	more, err := metadataMembers(object)
	if err != nil {
		return err
	}
	if len(members)+len(more) == 0 {
		e.Metadata = nil
		return nil
	}
	for _, m := range more {
		if _, taken := rawjson.Value(members, m.Name); !taken {
			members = append(members, m)
		}
	}
	e.Metadata = rawjson.Object(members)
	return nil
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
		return nil, fmt.Errorf("%w: %w", errMetadata, err)
	}
	members, err := rawjson.Members(compact)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMetadata, err)
	}
	return members, nil
}

// Broken lists the rules that an import broke and marked.
func (e *Event) Broken() (rules []Rule) {
	value, ok := e.MetadataValue(mark.Broken)
	if !ok || json.Unmarshal(value, &rules) != nil {
		return nil
	}
	return rules
}

// MarkBroken marks a rule that the event breaks, once.
func (e *Event) MarkBroken(rule Rule) error { return e.mark(mark.Broken, string(rule)) }

// MarkMasked marks a rule of a secret that was masked in the event, once.
func (e *Event) MarkMasked(rule string) error { return e.mark(mark.Masked, rule) }

// Masked reports whether secrets of the event were masked before it was stored.
func (e *Event) Masked() bool {
	_, ok := e.MetadataValue(mark.Masked)
	return ok
}

// mark adds a text to the list that a member of the metadata is.
func (e *Event) mark(name, text string) error {
	list := []string{}
	if value, ok := e.MetadataValue(name); ok {
		if err := json.Unmarshal(value, &list); err != nil {
			return fmt.Errorf("%w: %q: %w", errMetadata, name, err)
		}
	}
	if slices.Contains(list, text) {
		return nil
	}
	return e.SetMetadata(name, append(list, text))
}

// IsContext reports whether a program wrote the message in the user's name, as
// instructions and surroundings are: no view shows it as the user's words.
func (e *Event) IsContext() bool { return e.hasMark(mark.Context) }

// Repeats reports whether e is a raw record with the text of another event.
func (e *Event) Repeats() bool { return e.hasMark(mark.Repeats) }

// SetExtras gives e envelope members of the caller's own, as an object. Names of
// the envelope are refused with Rule("metadata").
func (e *Event) SetExtras(object jsontext.Value) error {
	value, err := rawjson.Compact(object)
	if err != nil {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	members, err := rawjson.Members(value)
	if err != nil {
		return fmt.Errorf("%w: %w", errMetadata, err)
	}
	for _, m := range members {
		if line.KnownMember(m.Name) {
			return fmt.Errorf("%w: member %q belongs to the envelope", errMetadata, m.Name)
		}
	}
	e.own().extras = value[1 : len(value)-1]
	return nil
}

package projection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// errBadState means that a body is not a state that its projection encodes.
var errBadState = errors.New("not an encoded state")

// errLean means that a history has left payloads in the log.
var errLean = errors.New("the history was loaded without its payloads (Options.Lean)")

// historyBody is the encoding of a HistoryState. An item is an array: kind, seq,
// payload and, of a literal, the range that it replaces. Payloads are copied
// unchanged.
type historyBody struct {
	Items      []item           `json:"items,omitzero"`
	Executions []item           `json:"executions,omitzero"`
	Cleared    map[string]int64 `json:"cleared,omitzero"`
	Files      workingSet       `json:"files,omitzero"`
	Usage      jsontext.Value   `json:"usage,omitzero"`
	Since      int64            `json:"since,omitzero"`
}

func (h *HistoryState) encode() (jsontext.Value, error) {
	var b bodyWriter
	items, executions := h.items.all(), h.executions.all()
	b.begin(items, executions)
	b.items("items", items)
	b.items("executions", executions)
	if len(h.cleared) > 0 {
		b.value("cleared", h.cleared)
	}
	if !h.files.isZero() {
		b.value("files", h.files)
	}
	if len(h.usage) > 0 {
		b.raw("usage", h.usage)
	}
	if h.since > 0 {
		b.value("since", h.since)
	}
	return b.end()
}

func decodeHistory(body jsontext.Value) (HistoryState, error) {
	var b historyBody
	if !b.read(body) {
		b = historyBody{}
		if err := readState(body, &b); err != nil {
			return HistoryState{}, err
		}
	}
	return b.state()
}

// state returns the state that b encodes.
func (b *historyBody) state() (HistoryState, error) {
	for _, x := range b.Executions {
		if x.kind != executionItem {
			return HistoryState{}, fmt.Errorf("%w: a %q among the executions", errBadState, x.letter())
		}
	}
	freezes, frozen := 0, int64(0)
	for _, it := range b.Items {
		switch {
		case it.kind == executionItem:
			return HistoryState{}, fmt.Errorf("%w: an execution among the items", errBadState)
		case it.kind == freezeItem:
			freezes++
			frozen = it.seq
		}
	}
	return HistoryState{
		items: listOf(b.Items), freezes: freezes, executions: decodeExecutions(b.Executions, frozen), cleared: b.Cleared, files: b.Files, usage: b.Usage, since: b.Since,
	}, nil
}

// readState decodes a body into a struct. It rejects a body that is no object: null
// would decode into any type.
func readState(body jsontext.Value, into any) error {
	if body.Kind() != '{' {
		return fmt.Errorf("%w: it is no object", errBadState)
	}
	return json.Unmarshal(body, into, json.RejectUnknownMembers(true))
}

// UnmarshalJSONFrom reads [kind, seq], [kind, seq, payload] or, of a literal, [kind,
// seq, payload, from, to].
func (it *item) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return fmt.Errorf("%w: an item is no array", errBadState)
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	var kind string
	if err := json.UnmarshalDecode(dec, &kind); err != nil {
		return err
	}
	if *it = (item{}); len(kind) != 1 || !it.setLetter(kind[0]) {
		return fmt.Errorf("%w: an item of kind %q", errBadState, kind)
	}
	if err := json.UnmarshalDecode(dec, &it.seq); err != nil {
		return err
	}
	if err := it.readRest(dec); err != nil {
		return err
	}
	if dec.PeekKind() != ']' {
		return fmt.Errorf("%w: item %d has too many elements", errBadState, it.seq)
	}
	_, err := dec.ReadToken()
	return err
}

func (it *item) readRest(dec *jsontext.Decoder) error {
	if it.kind == freezeItem {
		return nil
	}
	data, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if data.Kind() != '{' {
		return fmt.Errorf("%w: the payload of item %d is no object", errBadState, it.seq)
	}
	it.data = data.Clone()
	if it.event() {
		return nil
	}
	if err := json.UnmarshalDecode(dec, &it.covers.From); err != nil {
		return err
	}
	return json.UnmarshalDecode(dec, &it.covers.To)
}

// letter is the kind in a snapshot: of a redacted item in upper case.
func (it *item) letter() byte {
	if it.redacted {
		return byte(it.kind) - 'a' + 'A'
	}
	return byte(it.kind)
}

// setLetter sets the kind. It reports false for an unknown letter.
func (it *item) setLetter(letter byte) bool {
	if it.redacted = 'A' <= letter && letter <= 'Z'; it.redacted {
		letter += 'a' - 'A'
	}
	switch it.kind = itemKind(letter); it.kind {
	case messageItem, contextItem, literalItem, executionItem:
		return true
	case freezeItem:
		return !it.redacted
	}
	return false
}

// bodyWriter writes the members of an object. It copies payloads without parsing
// them: they are JSON already.
type bodyWriter struct {
	text []byte
	err  error
}

func (b *bodyWriter) begin(items ...[]item) {
	size := 64
	for _, list := range items {
		for i := range list {
			size += len(list[i].data) + 24
		}
	}
	b.text = append(make([]byte, 0, size), '{')
}

func (b *bodyWriter) name(name string) {
	if len(b.text) > 1 {
		b.text = append(b.text, ',')
	}
	b.text = append(append(append(b.text, '"'), name...), `":`...)
}

func (b *bodyWriter) raw(name string, v jsontext.Value) {
	b.name(name)
	b.text = append(b.text, v...)
}

func (b *bodyWriter) value(name string, v any) {
	text, err := json.Marshal(v, json.Deterministic(true))
	b.err = errors.Join(b.err, err)
	b.raw(name, text)
}

func (b *bodyWriter) items(name string, items []item) {
	if len(items) == 0 {
		return
	}
	b.name(name)
	for i := range items {
		b.text = append(b.text, "[,"[min(i, 1)])
		b.item(&items[i])
	}
	b.text = append(b.text, ']')
}

func (b *bodyWriter) item(it *item) {
	if it.size > 0 {
		b.err = errLean
	}
	b.text = append(b.text, '[', '"', it.letter(), '"', ',')
	b.text = strconv.AppendInt(b.text, it.seq, 10)
	if it.kind != freezeItem {
		b.text = append(append(b.text, ','), it.data...)
	}
	if !it.event() {
		b.text = strconv.AppendInt(append(b.text, ','), it.covers.From, 10)
		b.text = strconv.AppendInt(append(b.text, ','), it.covers.To, 10)
	}
	b.text = append(b.text, ']')
}

func (b *bodyWriter) end() (jsontext.Value, error) { return append(b.text, '}'), b.err }

// Digest identifies the history: equal histories have equal digests. It costs the items
// since the last call.
func (h *HistoryState) Digest() (event.Digest, error) { return h.digest() }

// digest covers the chain of items and the other fields that a rendering depends on.
// A freeze after the last item does not change it.
func (h *HistoryState) digest() (event.Digest, error) {
	if h.room != nil {
		return "", errLean
	}
	if err := h.chain.extend(h.items.from(h.chain.length)); err != nil {
		return "", err
	}
	var executed chain
	if err := executed.extend(h.executions.all()); err != nil {
		return "", err
	}
	text, err := json.Marshal(struct {
		Chain    event.Digest
		Executed event.Digest
		Cleared  []string
		Files    workingSet
	}{h.chain.link, executed.link, slices.Sorted(maps.Keys(h.cleared)), h.files})
	return event.DigestOf(text), err
}

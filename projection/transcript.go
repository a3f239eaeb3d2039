package projection

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// Transcript is all messages on the active path as they were appended, in order. It
// ignores compactions and contexts.
func Transcript() Projection[TranscriptState] {
	return Projection[TranscriptState]{
		builtin: true, Name: "transcript", Version: 1,
		Apply:  (*TranscriptState).apply,
		Encode: (*TranscriptState).encode,
		Decode: decodeTranscript,
		Digest: (*TranscriptState).digest,
	}
}

// TranscriptState is the state of Transcript. A copy of the struct is independent of
// the original.
type TranscriptState struct {
	items itemList
	chain chain
}

func (t *TranscriptState) clone() TranscriptState {
	return TranscriptState{items: t.items.clone(), chain: t.chain}
}

func (t *TranscriptState) apply(e *event.Event) error {
	if e.Type.Name() != event.MessageAdded {
		return nil
	}
	t.items.add(itemOf(messageItem, e))
	return e.Type.CheckVersion()
}

// Messages returns the messages. The pieces of a group are one entry, at the place of
// the first piece. A redacted message keeps its role and the ids of its calls and
// results.
func (t *TranscriptState) Messages() ([]Entry, error) {
	entries := make([]Entry, 0, t.items.len())
	groups := map[groupKey]int{}
	for it := range t.items.each() {
		var p piece
		if err := it.decode(&p); err != nil {
			return nil, err
		}
		key := groupKey{p.message.Group, p.message.Role}
		at, begun := groups[key]
		if key.group != "" && begun {
			entries[at].fold(p.seq, p.message, p.made)
			continue
		}
		groups[key] = len(entries)
		entries = append(entries, Entry{Seq: p.seq, Message: p.message, Made: p.made})
	}
	return entries, nil
}

func (t *TranscriptState) encode() (jsontext.Value, error) {
	var b bodyWriter
	items := t.items.all()
	b.begin(items)
	b.items("items", items)
	return b.end()
}

func decodeTranscript(body jsontext.Value) (TranscriptState, error) {
	var b struct {
		Items []item `json:"items"`
	}
	if err := readState(body, &b); err != nil {
		return TranscriptState{}, err
	}
	for _, it := range b.Items {
		if it.kind != messageItem {
			return TranscriptState{}, errBadState
		}
	}
	return TranscriptState{items: listOf(b.Items)}, nil
}

func (t *TranscriptState) digest() (event.Digest, error) {
	err := t.chain.extend(t.items.from(t.chain.length))
	return t.chain.link, err
}

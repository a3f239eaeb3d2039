package document

import (
	"slices"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/sessions"
)

// keys are the items of a document, as the tree looks them up.
type keys []*sought

// sought is an item that is looked up.
type sought struct {
	key    event.Digest
	item   *Item
	format string
	read   *sessions.Shape // nil until it is needed
}

// shape is the shape of the item's event.
func (it *sought) shape() *sessions.Shape {
	if it.read == nil {
		p := it.item.Payload
		_, ok := p.(event.Compaction)
		if ok && it.item.Forgets != nil {
			p = nil // it is not complete yet
		}
		s := sessions.ShapeOf(p, it.item.rawType(it.format))
		if ok {
			s.Types = append(slices.Clip(s.Types), event.CompactionTriggered)
		}
		it.read = &s
	}
	return it.read
}

// keysOf computes the keys of items.
func keysOf(items []Item, format string) (all keys, err error) {
	all = make(keys, len(items))
	room := make([]sought, len(items))
	for i := range items {
		it := &items[i]
		room[i] = sought{item: it, format: format}
		all[i] = &room[i]
		if all[i].key, err = it.key(); err != nil {
			return nil, it.Rec.Located(err)
		}
	}
	return all, nil
}

// from yields the items from the i-th on; nil after the last.
func (k keys) from(i int) func(ahead int) *sought {
	return func(ahead int) *sought {
		if i+ahead >= len(k) {
			return nil
		}
		return k[i+ahead]
	}
}

// key is the digest of the content of the item.
func (it *Item) key() (event.Digest, error) {
	if it.Key != "" {
		return it.Key, nil
	}
	if it.Name != "" && !sessions.Drawn(it.Name) {
		return nameKey(it.Name), nil
	}
	if m, ok := it.Payload.(event.Message); ok {
		return contentKey(&m)
	}
	if c, ok := it.Payload.(event.ContextEntry); ok {
		return contentKey(&event.Message{Role: event.Role("context " + c.Kind), Parts: c.Parts})
	}
	if it.Name != "" {
		return "", nil
	}
	return valueKey(it.Kind, it.Rec.Value)
}

// nameKey is the key of an item whose name is computed from content: no id may depend on
// it.
func nameKey(name string) event.Digest { return event.DigestOf([]byte("name\n" + name)) }

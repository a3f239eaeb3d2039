package document

import (
	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

// keys are the items of a document, as the tree looks them up.
type keys []sought

// keysOf computes the keys of items.
func keysOf(items []Item, format string) (all keys, err error) {
	all = make(keys, len(items))
	for i := range items {
		it := &items[i]
		all[i].shape = interop.ShapeOf(it.Payload, it.rawType(format))
		if all[i].key, err = it.key(); err != nil {
			return nil, it.Rec.Located(err)
		}
	}
	return all, nil
}

// at is the i-th item; ok is false after the last.
func (k keys) at(i int) (it sought, ok bool) {
	if i >= len(k) {
		return it, false
	}
	return k[i], true
}

// key is the digest of what the item says.
func (it *Item) key() (event.Digest, error) {
	if it.Key != "" {
		return it.Key, nil
	}
	if it.Name != "" && !interop.Drawn(it.Name) {
		return nameKey(it.Name), nil
	}
	if m, ok := it.Payload.(event.Message); ok {
		return contentKey(&m)
	}
	if it.Name != "" {
		return "", nil
	}
	return valueKey(it.Kind, it.Rec.Value)
}

// nameKey is the key of an item whose name is computed from content: no id may depend on
// it.
func nameKey(name string) event.Digest { return event.DigestOf([]byte("name\n" + name)) }

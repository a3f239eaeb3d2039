package projection

import (
	"cmp"
	"slices"
)

// element is a list element with a key. The list is ordered by seq.
type element[T any] interface {
	*T
	lookupKey() (key string, seq int64)
}

// lookup finds the elements of a list in a state by key, without a search from end to
// end for each event. It is built from the list when the list is another one, for
// example the list of a copied state. It is not part of the state. Keys are unique.
type lookup[T any, P element[T]] struct {
	list *[]T
	seqs map[string]int64
}

// of returns the seqs of the list's elements by key.
func (l *lookup[T, P]) of(list *[]T) map[string]int64 {
	if l.list == list {
		return l.seqs
	}
	l.list, l.seqs = list, map[string]int64{}
	for i := range *list {
		key, seq := P(&(*list)[i]).lookupKey()
		l.seqs[key] = seq
	}
	return l.seqs
}

// add appends to the list.
func (l *lookup[T, P]) add(list *[]T, v T) {
	key, seq := P(&v).lookupKey()
	l.of(list)[key] = seq
	*list = append(*list, v)
}

// remove removes the element with the key and returns it. It returns the zero value
// if there is none.
func (l *lookup[T, P]) remove(list *[]T, key string) (v T) {
	seqs := l.of(list)
	seq, ok := seqs[key]
	if !ok {
		return v
	}
	delete(seqs, key)
	i, ok := slices.BinarySearchFunc(*list, seq, func(v T, seq int64) int {
		_, at := P(&v).lookupKey()
		return cmp.Compare(at, seq)
	})
	same := func(v T) bool { k, _ := P(&v).lookupKey(); return k == key }
	if !ok || !same((*list)[i]) { // events of several sessions are in no order
		i = slices.IndexFunc(*list, same)
	}
	if v = (*list)[i]; i == 0 {
		*list = (*list)[1:]
	} else {
		*list = slices.Delete(*list, i, i+1)
	}
	return v
}

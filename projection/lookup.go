package projection

import (
	"cmp"
	"slices"
)

// keyed is what stands in a list under a key; the list is in the order of its seqs.
type keyed[T any] interface {
	*T
	keyed() (key string, seq int64)
}

// lookup finds what stands in a list of a state, so that one with many entries is
// not searched from end to end at each event. It is made of the list whenever that
// is another than before, as that of a copy of the state is; it is no part of the
// state. No two entries have one key.
type lookup[T any, P keyed[T]] struct {
	list *[]T
	seqs map[string]int64
}

// of is what the list has: seqs by keys.
func (l *lookup[T, P]) of(list *[]T) map[string]int64 {
	if l.list == list {
		return l.seqs
	}
	l.list, l.seqs = list, map[string]int64{}
	for i := range *list {
		key, seq := P(&(*list)[i]).keyed()
		l.seqs[key] = seq
	}
	return l.seqs
}

// add appends to the list.
func (l *lookup[T, P]) add(list *[]T, v T) {
	key, seq := P(&v).keyed()
	l.of(list)[key] = seq
	*list = append(*list, v)
}

// take takes what has the key out of the list; it is the zero value where there is
// none.
func (l *lookup[T, P]) take(list *[]T, key string) (v T) {
	seqs := l.of(list)
	seq, ok := seqs[key]
	if !ok {
		return v
	}
	delete(seqs, key)
	i, ok := slices.BinarySearchFunc(*list, seq, func(v T, seq int64) int {
		_, at := P(&v).keyed()
		return cmp.Compare(at, seq)
	})
	same := func(v T) bool { k, _ := P(&v).keyed(); return k == key }
	if !ok || !same((*list)[i]) { // events of several sessions have no order
		i = slices.IndexFunc(*list, same)
	}
	if v = (*list)[i]; i == 0 {
		*list = (*list)[1:]
	} else {
		*list = slices.Delete(*list, i, i+1)
	}
	return v
}

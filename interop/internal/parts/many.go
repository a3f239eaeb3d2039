package parts

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// many are the members of an object that is not split: a list of its members would need several
// times its memory. Each call scans the object.
type many struct {
	object jsontext.Value // nil if there are none
	taken  []int          // the offsets of the members that were taken
}

// manyMembers is the number of members from which an object is not split.
const manyMembers = 50_000

// openMany returns the members of an object that has many; none of any other value.
func openMany(object jsontext.Value) many {
	if !rawjson.Wider(object, manyMembers) || !rawjson.WellFormed(object) {
		return many{}
	}
	return many{object: object}
}

func (m *many) any() bool { return m.object != nil }

// each calls visit with the members that were not taken, until visit returns false.
func (m *many) each(visit func(s rawjson.Scanned) bool) {
	if m.any() {
		rawjson.Scan(m.object, func(s rawjson.Scanned) bool { return slices.Contains(m.taken, s.Offset) || visit(s) })
	}
}

// find returns the value of a member and its offset; nil if there is none.
func (m *many) find(name string) (value jsontext.Value, offset int) {
	m.each(func(s rawjson.Scanned) bool {
		if string(s.Name) == name {
			value, offset = s.Value, s.Offset
		}
		return value == nil
	})
	return value, offset
}

func (m *many) take(name string) jsontext.Value {
	v, offset := m.find(name)
	if v != nil {
		m.taken = append(slices.Clip(m.taken), offset)
	}
	return v
}

// hasText reports whether a member is a string.
func (m *many) hasText() (found bool) {
	m.each(func(s rawjson.Scanned) bool {
		found = s.Value.Kind() == '"'
		return !found
	})
	return found
}

// rest is an object of the members that were not taken, and more members; nil if there are none.
func (m *many) rest(more []rawjson.Member, withoutNulls bool) jsontext.Value {
	b := append(make([]byte, 0, len(m.object)), '{')
	m.each(func(s rawjson.Scanned) bool {
		if !withoutNulls || s.Value.Kind() != 'n' {
			b = append(append(append(append(b, s.Quoted...), ':'), s.Value...), ',')
		}
		return true
	})
	for i := range more {
		b = append(append(append(more[i].AppendName(b), ':'), more[i].Value...), ',')
	}
	if len(b) == 1 {
		return nil
	}
	b[len(b)-1] = '}'
	return b
}

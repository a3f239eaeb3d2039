package projection

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// read reads an encoded history in one pass, in a third of the time of a decoder. If sure is
// false, a decoder must read it; it may be valid.
func (b *historyBody) read(body jsontext.Value) (sure bool) {
	return rawjson.Read(body, func(c rawjson.Cursor) bool {
		return c.Object(func(name []byte) bool { return b.readMember(c, string(name)) })
	})
}

func (b *historyBody) readMember(c rawjson.Cursor, name string) (sure bool) {
	switch name {
	case "items":
		return readItems(c, &b.Items)
	case "executions":
		return readItems(c, &b.Executions)
	case "since":
		b.Since, sure = c.Int()
		return sure
	}
	value, sure := c.Skip()
	if !sure {
		return false
	}
	switch name {
	case "cleared":
		return json.Unmarshal(value, &b.Cleared) == nil
	case "files":
		return json.Unmarshal(value, &b.Files, json.RejectUnknownMembers(true)) == nil
	case "usage":
		b.Usage = value.Clone()
		return true
	}
	return false
}

func readItems(c rawjson.Cursor, items *[]item) (sure bool) {
	return c.Array(func() bool {
		var it item
		sure := it.read(c)
		*items = append(*items, it)
		return sure
	})
}

// read is UnmarshalJSONFrom with a cursor.
func (it *item) read(c rawjson.Cursor) (sure bool) {
	n := 0
	sure = c.Array(func() bool {
		n++
		return it.readElement(c, n)
	})
	switch {
	case it.kind == freezeItem:
		return sure && n == 2
	case it.event():
		return sure && n == 3
	}
	return sure && n == 5
}

// readElement reads element n of an item; the first one is 1.
func (it *item) readElement(c rawjson.Cursor, n int) (sure bool) {
	switch n {
	case 1:
		kind, sure := c.Text()
		return sure && len(kind) == 1 && it.setLetter(kind[0])
	case 2:
		it.seq, sure = c.Int()
		return sure
	case 3:
		isObject := c.Kind() == '{'
		data, sure := c.Skip()
		it.data = data.Clone()
		return sure && isObject
	case 4:
		it.covers.From, sure = c.Int()
		return sure
	case 5:
		it.covers.To, sure = c.Int()
		return sure
	}
	return false
}

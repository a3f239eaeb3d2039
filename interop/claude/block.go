package claude

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// block is a content block.
type block []rawjson.Member

// blocksOf returns the blocks of a content array; nil if content is not such an array.
func blocksOf(content jsontext.Value) []block {
	elements, err := rawjson.Elements(content)
	if err != nil {
		return nil
	}
	blocks := make([]block, len(elements))
	for i, v := range elements {
		if v.Kind() == 'n' {
			continue
		}
		if blocks[i], err = rawjson.Members(v); err != nil {
			return nil
		}
	}
	return blocks
}

// text is the value of a string member; empty if there is none.
func (b block) text(name string) string {
	for i := range b {
		if b[i].Name == name {
			return textOf(&b[i])
		}
	}
	return ""
}

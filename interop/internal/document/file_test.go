package document

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
)

// offsetIn finds the elements of an array, also if the fast splitter leaves the array
// to the decoder. It finds no copy.
func TestOffsetIn(t *testing.T) {
	for _, whole := range []string{
		`[{"a":1}, {"b":2}]`,
		`[{"a":"\u0061\ud83d\ude00"}, {"\u0062":2}]`,
		"[ {\"a\" :\n1} ,\n\t{\"b\":2.50E+3}, \"\\/\" ]",
		`[1,{"deep":[[[[{"x":[{"y":{}}]}]]]]},true,null,""]`,
	} {
		array := jsontext.Value(whole)
		elements, err := rawjson.Elements(array)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range elements {
			for _, part := range []jsontext.Value{v, v[:len(v):len(v)]} {
				if start, ok := offsetIn(array, part); !ok || whole[start:start+len(part)] != string(part) {
					t.Errorf("%s in %s: %d, %v", part, whole, start, ok)
				}
			}
			if _, ok := offsetIn(array, v.Clone()); ok {
				t.Errorf("a copy of %s is in %s", v, whole)
			}
		}
		if _, ok := offsetIn(array[:3], array); ok {
			t.Error("the whole is in a part")
		}
	}
}

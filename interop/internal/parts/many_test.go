package parts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/convlog/convlog/internal/rawjson"
)

// The members of an object that is not split are taken and written as those of a split one.
func TestManyMembers(t *testing.T) {
	var between strings.Builder
	for i := range manyMembers {
		fmt.Fprintf(&between, `"m%d":%d,`, i, i)
	}
	text := []byte(`{"a":"x" , ` + between.String() + `"n\u0061me": [1, 2],"none":null,"z":{}}`)
	o, err := Open(text)
	if err != nil || !o.many.any() {
		t.Fatalf("split: %v", err)
	}
	split, err := rawjson.Members(text)
	if err != nil {
		t.Fatal(err)
	}
	few := Members{members: split}
	for _, of := range []*Members{&o, &few} {
		if got := string(of.Take("name")); got != "[1, 2]" || of.Has("name") || of.Take("name") != nil {
			t.Errorf("took %q", got)
		}
		if of.Peek("m5") == nil || of.PeekText("a") != "x" || of.Has("m") || !hasText(of) {
			t.Error("a member is missing")
		}
		earlier := *of
		of.Take("a")
		of.Put("more", []byte("1"))
		if !earlier.Has("a") || hasText(of) {
			t.Error("a copy has another member less")
		}
	}
	if string(o.Rest()) != string(few.Rest()) || string(o.RestWithoutNulls()) != string(few.RestWithoutNulls()) {
		t.Errorf("rest %.200q, split %.200q", o.Rest(), few.Rest())
	}
}

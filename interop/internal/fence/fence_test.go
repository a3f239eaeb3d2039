package fence_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/interop/internal/fence"
)

func TestSplit(t *testing.T) {
	code := func(info, text string) fence.Segment { return fence.Segment{Code: true, Info: info, Text: text} }
	for text, want := range map[string][]fence.Segment{
		"":                            nil,
		"a\nb":                        {{Text: "a\nb"}},
		"a\n```go\nb\n```\nc":         {{Text: "a"}, code("go", "b"), {Text: "c"}},
		"````\n```\n````":             {code("", "```")},
		"~~~ sh x\n```\n~~~~":         {code("sh x", "```")},
		"```\nopen":                   {code("", "open")},
		"``` `x` ```\ny":              {{Text: "``` `x` ```\ny"}},
		"    ```\nindented":           {{Text: "    ```\nindented"}},
		"```\na\n``` no end\n```\n\n": {code("", "a\n``` no end")},
	} {
		if diff := cmp.Diff(want, fence.Split(text)); diff != "" {
			t.Errorf("%q (+):\n%s", text, diff)
		}
	}
}

// Law: a text between fences is the block of code that is read back.
func TestNothingEndsAFence(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"`", "``", "```", "````", "~~~", "a", " ", "\n"}), 1, 20).Draw(r, "text"), "")
		around := fence.Around(text)
		want := []fence.Segment{{Code: true, Text: text}}
		if diff := cmp.Diff(want, fence.Split(around+"\n"+text+"\n"+around)); diff != "" {
			r.Fatalf("%q (+):\n%s", text, diff)
		}
	})
}

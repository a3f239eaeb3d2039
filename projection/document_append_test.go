package projection_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/projection"
)

// A patch changes no other version of the document, whatever versions share an array.
func TestVersionsOfADocumentStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := `{"list":[1],"map":{"a":1}}`
		first, err := projection.ParseDocument([]byte(start))
		if err != nil {
			t.Fatal(err)
		}
		versions, texts := []*projection.Document{first}, []string{start}
		for range rapid.IntRange(1, 120).Draw(t, "patches") {
			v := max(len(versions)-1-rapid.SampledFrom([]int{0, 0, 0, 0, 1, 5}).Draw(t, "version"), 0)
			key := rapid.IntRange(0, 60).Draw(t, "key")
			patch := fmt.Sprintf(rapid.SampledFrom([]string{
				`[{"op":"add","path":"/map/k%d","value":{"v":1}}]`,
				`[{"op":"add","path":"/map/k%d","value":2}]`,
				`[{"op":"replace","path":"/map/k%d","value":3}]`,
				`[{"op":"remove","path":"/map/k%d"}]`,
				`[{"op":"add","path":"/list/-","value":%d}]`,
				`[{"op":"add","path":"/list/0","value":%d}]`,
				`[{"op":"replace","path":"/list/0","value":%d}]`,
				`[{"op":"move","from":"/map/k%d","path":"/list/-"}]`,
			}).Draw(t, "patch"), key)
			want, wrong := projection.ApplyPatch([]byte(texts[v]), []byte(patch))
			got, err := projection.PatchDocument(versions[v], []byte(patch))
			if (err == nil) != (wrong == nil) {
				t.Fatalf("patch %s: %v, want %v", patch, err, wrong)
			}
			if err == nil {
				versions, texts = append(versions, got), append(texts, string(want))
			}
		}
		for i, v := range versions {
			if got := projection.DocumentText(v); got != texts[i] {
				t.Fatalf("version %d is\n%s, want\n%s", i, got, texts[i])
			}
		}
	})
}

// The bytes that a patch allocates do not grow with the document that it adds to or whose
// members it replaces.
func TestAddingToAStateAllocatesInProportion(t *testing.T) {
	for _, patch := range []string{
		`[{"op":"add","path":"/k%d","value":{"a":1}}]`,
		`[{"op":"add","path":"/list/-","value":%d}]`,
		`[{"op":"add","path":"/list/-","value":%[1]d},{"op":"replace","path":"/list/%[1]d","value":-1}]`,
		`[{"op":"add","path":"/k%[1]d","value":1},{"op":"add","path":"/k%[1]d","value":-1}]`,
	} {
		perPatch := func(n int) float64 {
			events := make([]event.Event, n)
			for i := range events {
				events[i] = event.New(event.CustomPatch{Name: "s", Patch: []byte(fmt.Sprintf(patch, i))})
				events[i].Seq = int64(i + 2)
			}
			begin := event.New(event.CustomPatch{Name: "s", Patch: []byte(`[{"op":"add","path":"","value":{"list":[]}}]`)})
			var s projection.CustomStates
			used := allocated(func() {
				for _, e := range append([]event.Event{begin}, events...) {
					if err := projection.Custom().Apply(&s, &e); err != nil {
						t.Fatal(err)
					}
				}
			})
			if s.Get("s").Skipped > 0 {
				t.Errorf("%d patches do not apply", s.Get("s").Skipped)
			}
			return used / float64(n)
		}
		n := testsize.Pick(250, 250, 500)
		if few, many := perPatch(n), perPatch(16*n); many > 2*few {
			t.Errorf("%s: %.0f bytes per patch for %d patches, %.0f for %d", patch, few, n, many, 16*n)
		}
	}
}

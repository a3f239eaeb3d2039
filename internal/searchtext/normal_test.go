package searchtext

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// marks are characters that compose, decompose, or become others.
var marks = []rune("aeEskoqσ ;`\u0301\u0323\u0302\u0308é\u1ec7ÅΩ\u212b\u2126\u212a\u037e\u1fef\u0344\uac00\u1100\u1161\u11a8か\u3099が\uf900\u8c48\u0958\u0915\u093c\u00a0\u2000")

// Law: a text is equal in each normalization form, except where a character becomes ASCII.
func TestCleanUnifiesForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom(marks)).Draw(t, "text")
		want := Clean(text)
		if again := Clean(want); again != want {
			t.Fatalf("Clean(%q) = %q, and %q the second time", text, want, again)
		}
		if strings.ContainsFunc(text, becomesASCII) {
			return
		}
		for name, form := range map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD} {
			if got := Clean(form.String(text)); got != want {
				t.Fatalf("the %s of %q gives %q, want %q", name, text, got, want)
			}
		}
	})
}

// Law: each literal character of a cleaned text is in the text itself, beside the same literal
// neighbours.
func TestLiteralCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom(marks)).Draw(t, "text")
		for _, piece := range strings.FieldsFunc(Clean(text), func(r rune) bool { return r == ' ' || !IsLiteral(r) }) {
			if !strings.Contains(text, piece) {
				t.Fatalf("%q of the cleaned text is not in %q", piece, text)
			}
		}
	})
}

// replaced has every character that another one becomes, and no character becomes ASCII but
// those of becomesASCII.
func TestReplacedCharacters(t *testing.T) {
	for r := rune(utf8.RuneSelf); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if norm.NFD.String(string(r)) != string(r) && IsLiteral(r) {
			t.Errorf("%U is composed and literal", r)
		}
		text := string(r)
		composed := norm.NFC.String(text)
		if composed == text {
			continue
		}
		for _, to := range composed {
			if to < utf8.RuneSelf && !becomesASCII(r) {
				t.Errorf("%U becomes %U", r, to)
			}
			if !becomesASCII(r) && IsLiteral(to) {
				t.Errorf("%U becomes %U, which is literal", r, to)
			}
		}
	}
}

// The forms of a text have each spelling of it.
func TestFormsOfEachSpelling(t *testing.T) {
	for _, text := range []string{"Jos\u00e9", "Jose\u0301"} {
		var all []string
		for _, form := range Forms(text) {
			all = append(all, string(form))
		}
		for _, want := range []string{"Jos\u00e9", "Jose\u0301", `Jos\u00e9`, `Jose\u0301`} {
			if !strings.Contains(strings.Join(all, "\n")+"\n", want+"\n") {
				t.Errorf("the forms of %+q lack %+q: %+q", text, want, all)
			}
		}
	}
}

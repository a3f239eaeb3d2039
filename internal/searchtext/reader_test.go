package searchtext

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
)

// textRunes are runes that folding and cleaning treat differently.
var textRunes = []rune("abzAZ@[`{09 \t\n\r\x00\x1f\x7f\u0085\u00a0ÀßſKé中\u2003\ufffd😀")

func drawText(t *rapid.T, label string) string {
	text := rapid.StringOf(rapid.SampledFrom(textRunes)).Draw(t, label)
	if rapid.Bool().Draw(t, "words") {
		text = strings.Repeat("Some words of A Text ", rapid.IntRange(0, 3).Draw(t, "repeats")) + text
	}
	if rapid.Bool().Draw(t, "invalid") {
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		text = text[:at] + "\xff" + text[at:]
	}
	return text
}

func TestFoldEachCharacter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		var want strings.Builder
		for _, r := range text {
			want.WriteRune(FoldRune(r))
		}
		if got := Fold(text); got != want.String() {
			t.Fatalf("Fold(%q) = %q, want %q", text, got, want.String())
		}
	})
}

func TestCleanByFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t, "text")
		want := strings.Join(strings.FieldsFunc(eachInvalid(text), unicode.IsSpace), " ")
		if got := Clean(text); got != want {
			t.Fatalf("Clean(%q) = %q, want %q", text, got, want)
		}
	})
}

// eachInvalid replaces each byte that is not UTF-8 by U+FFFD.
func eachInvalid(text string) string {
	var b strings.Builder
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}

// The cursor and the decoder read the same texts, and refuse the same data.
func TestTextReaders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := drawJSON(t, 3)
		if rapid.IntRange(0, 9).Draw(t, "damage") == 0 && len(data) > 0 {
			at := rapid.IntRange(0, len(data)-1).Draw(t, "place")
			data = data[:at] + rapid.SampledFrom([]string{"", `"`, `\`, "}", "\x01", "\xff", " "}).Draw(t, "piece") + data[at+1:]
		}
		free := rapid.Bool().Draw(t, "free")
		var r Reader
		err := r.read(jsontext.Value(data), free)
		got := string(r.text)
		var d Reader
		want := d.decode(jsontext.Value(data), free)
		if (err == nil) != (want == nil) || err == nil && got != string(d.text) {
			t.Fatalf("the text of %q is %q, %v; the decoder reads %q, %v", data, got, err, d.text, want)
		}
	})
}

// drawJSON draws JSON with members of each kind, white space, escapes and repeated names.
func drawJSON(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind %= 4
	}
	space := rapid.SampledFrom([]string{"", "", " ", "\n"}).Draw(t, "space")
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"null", "true", "12", "-0.5e3"}).Draw(t, "literal")
	case 1, 2, 3:
		quoted, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(drawText(t, "string"), string(utf8.RuneError)))
		if err != nil {
			t.Fatal(err)
		}
		return string(quoted)
	case 4:
		var elements []string
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			elements = append(elements, drawJSON(t, depth-1)+space)
		}
		return "[" + space + strings.Join(elements, ","+space) + "]"
	default:
		names := []string{"text", "arguments", "id", "media_type", "data", "parts", `te\u0078t`}
		var members []string
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			members = append(members, `"`+name+`"`+space+":"+space+drawJSON(t, depth-1))
		}
		return "{" + space + strings.Join(members, ","+space) + "}"
	}
}

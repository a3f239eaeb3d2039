package secrets

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func nothing(jsontext.Pointer) bool { return false }

// Masks keep JSON valid, with each name once, and a second pass changes nothing.
func FuzzMaskJSON(f *testing.F) {
	token := "gh" + "p_" + sample(alnum, 36)
	for _, seed := range []string{
		`{"a":"` + token + `"}`, `{"` + token + `":1,"` + token + `x":{"password":"Tr0ub4dor"}}`, `["[secret:jwt]","\/\/u:p4ssw0rd@h","é"]`,
		`{"[secret:github-token]":1,"` + token + `":2,"[secret:github-token]#2":3}`, `"` + token + `"`, `1e400`, ` { "api_key" : "` + sample(alnum, 32) + `" } `,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value := jsontext.Value(text)
		masked, err := Default().maskJSON(value, nothing, func(inJSON) {})
		if !value.IsValid() {
			return // the log refuses it
		}
		if err != nil || !masked.IsValid() {
			t.Fatalf("%s became %s, %v", value, masked, err)
		}
		again, err := Default().maskJSON(masked, nothing, func(found inJSON) { t.Errorf("%s became %s with %v", value, masked, found) })
		if err != nil || string(again) != string(masked) {
			t.Fatalf("%s became %s, %v", masked, again, err)
		}
	})
}

// Only strings change: numbers, white space and escapes of other strings keep their bytes.
func TestMaskJSONKeepsTheRest(t *testing.T) {
	token := "gh" + "p_" + sample(alnum, 36)
	text := "{ \"n\" : 1.50e+3,\n\"s\":\"\\u0041\\/\", \"t\":\"TOKEN\" , \"deep\":[[[{\"x\":\"a TOKEN b\"}]]]}"
	masked, err := Default().maskJSON(jsontext.Value(strings.ReplaceAll(text, "TOKEN", token)), nothing, func(inJSON) {})
	if want := strings.ReplaceAll(text, "TOKEN", "[secret:github-token]"); err != nil || string(masked) != want {
		t.Errorf("got %s, want %s, %v", masked, want, err)
	}
}

// A text takes time in proportion to its length, also if it is full of keywords.
func TestRegionsOfARuleDoNotOverlap(t *testing.T) {
	text := []byte(strings.Repeat("password ", 10_000))
	end := map[int]int{}
	regions, _ := Default().regions(text)
	for _, r := range regions {
		if r.from < end[r.rule] {
			t.Fatalf("region %v begins before %d", r, end[r.rule])
		}
		end[r.rule] = r.to
	}
	if len(end) == 0 {
		t.Error("no region")
	}
}

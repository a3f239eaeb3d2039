package records_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/records"
)

// Values are on lines of their own, several on a line, or over many lines; each is where
// its record says.
func TestValues(t *testing.T) {
	for content, want := range map[string][]string{
		"":                                 nil,
		"\n \r\n":                          nil,
		"{\"a\":1}\n[2]\n":                 {`1@0 {"a":1}`, `2@8 [2]`},
		"\n\ufeff":                         {"2@1 rejected"},
		"\ufeff[1]{}\r\n[2]":               {`1@3 [1]`, `1@6 {}`, `2@10 [2]`},
		"{\n \"a\": [\n1]}\n\n[2]":         {"1@0 {\n \"a\": [\n1]}", "5@15 [2]"},
		"[1,\n2":                           {"1@0 cut off [1,\n2"},
		"[1]\n[2,\n[3]\n7\n[4":             {"1@0 [1]", "2@4 cut off [2,", "3@8 [3]", "4@12 rejected", "5@14 cut off [4"},
		"[1,\n{}\n]]\n[2]":                 {"1@0 [1,\n{}\n]", "3@8 rejected"},
		"{\"a\n[1]\n":                      {"1@0 cut off {\"a", "2@4 [1]"},
		"{\"a\":1,\"a\":2}\n[\"\\ud800\"]": {"1@0 rejected", "2@14 [\"\ufffd\"]"},
	} {
		if diff := cmp.Diff(want, values(t, content)); diff != "" {
			t.Errorf("%q (+):\n%s", content, diff)
		}
	}
}

func values(t *testing.T, content string) (all []string) {
	src := interop.Source{Name: "f", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
	for rec, err := range records.Values(src) {
		var rejected *records.RecordError
		at := fmt.Sprintf("%d@%d ", rec.Line, rec.Offset)
		switch {
		case err == nil:
			at += string(rec.Value)
		case !errors.As(err, &rejected):
			t.Fatal(err)
		case errors.Is(rejected.Cause, io.ErrUnexpectedEOF):
			at += "cut off " + string(rec.Value)
		default:
			at += "rejected"
		}
		all = append(all, at)
	}
	return all
}

// An error of the file ends its values.
func TestValuesOfAFileThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken disk")
	for _, before := range []string{"", "[1]\n", "[1,\n"} {
		src := interop.Source{Name: "f", Open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader(before), failing{broken})), nil
		}}
		var last error
		for _, err := range records.Values(src) {
			last = err
		}
		if !errors.Is(last, broken) {
			t.Errorf("after %q: %v", before, last)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A record of many members is read, on one line or on many. It is rejected if a name repeats. A
// file of lines rejects a record of too many members before it is parsed, and reads the next line.
func TestTooManyMembers(t *testing.T) {
	members := func(n int, between string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, `%s"%d":[{}],`, between, i)
		}
		return "{" + text.String() + `"z":{}}`
	}
	for _, between := range []string{"", "\n"} {
		if got := values(t, members(records.MaxMembers, between)); len(got) != 1 || strings.HasSuffix(got[0], "rejected") {
			t.Errorf("many: %.100q", got)
		}
		repeated := strings.Replace(members(records.MaxMembers, between), `"z"`, `"7"`, 1)
		if got := values(t, repeated); len(got) != 1 || got[0] != "1@0 rejected" {
			t.Errorf("a repeated name: %.100q", got)
		}
	}
	line := members(records.MaxMembers, "")
	var got []string
	for rec, err := range records.Records(interop.Source{Name: "f", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(line + "\n{}\n")), nil }}) {
		got = append(got, fmt.Sprint(rec.Line, err != nil))
	}
	if want := []string{"1 true", "2 false"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

package records

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
)

func text(name, content string) interop.Source {
	return interop.Source{
		Name: name,
		Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil },
		Size: int64(len(content)),
	}
}

// row is a record or a rejection.
type row struct {
	Line, Offset int64
	Value        string
	Rejected     string
}

func rows(t *testing.T, content string) (all []row) {
	t.Helper()
	for r, err := range Records(text("f", content)) {
		var rejected *RecordError
		switch {
		case err == nil:
			if want := content[r.Offset : r.Offset+r.Size]; r.Digest != event.DigestOf([]byte(want)) {
				t.Errorf("record at %d: digest is not that of %s", r.Offset, want)
			}
			all = append(all, row{Line: r.Line, Offset: r.Offset, Value: string(r.Value)})
		case errors.As(err, &rejected):
			all = append(all, row{Line: rejected.Line, Offset: rejected.Offset, Rejected: rejected.Cause.Error()})
		default:
			t.Fatal(err)
		}
	}
	return all
}

func TestRecords(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          []row
	}{
		{"nothing", "", nil},
		{"lines", "{\"a\":1}\n{\"a\":2}\n", []row{{1, 0, `{"a":1}`, ""}, {2, 8, `{"a":2}`, ""}}},
		{"no final newline", "{\"a\":1}\n{\"a\":2}", []row{{1, 0, `{"a":1}`, ""}, {2, 8, `{"a":2}`, ""}}},
		{"two on one line", "{\"a\":1}{\"a\":2} {\"a\":3}\n", []row{{1, 0, `{"a":1}`, ""}, {1, 7, `{"a":2}`, ""}, {1, 15, `{"a":3}`, ""}}},
		{"carriage returns", "{\"a\":1}\r\n\r\n{\"a\":2}\r\n", []row{{1, 0, `{"a":1}`, ""}, {3, 11, `{"a":2}`, ""}}},
		{"byte order mark", "\ufeff{\"a\":1}\n{\"b\":2}\n", []row{{1, 3, `{"a":1}`, ""}, {2, 11, `{"b":2}`, ""}}},
		{"white space is kept", "  {\"a\": [1, 2]}\n", []row{{1, 2, `{"a": [1, 2]}`, ""}}},
		{
			"cut off at the end", "{\"a\":1}\n{\"a\":\"on",
			[]row{{1, 0, `{"a":1}`, ""}, {2, 8, "", "cut off after 8 bytes: unexpected EOF"}},
		},
		{
			"cut off in the middle", "{\"a\":\n{\"a\":2}\n",
			[]row{{1, 0, "", "cut off after 5 bytes: unexpected EOF"}, {2, 6, `{"a":2}`, ""}},
		},
		{
			"the second on a line is cut off", "{\"a\":1}{\"a\"\n{\"a\":3}\n",
			[]row{{1, 0, `{"a":1}`, ""}, {1, 7, "", "cut off after 4 bytes: unexpected EOF"}, {2, 12, `{"a":3}`, ""}},
		},
		{
			"no objects", "\"s\"\n[1]{\"a\":1}\n7\nnull\n",
			[]row{
				{1, 0, "", "a JSON string, not an object"}, {2, 4, "", "a JSON array, not an object"},
				{2, 7, `{"a":1}`, ""}, {3, 15, "", "a JSON number, not an object"}, {4, 17, "", "a JSON literal, not an object"},
			},
		},
		{"half a surrogate pair", `{"a":"x\ud83d"}`, []row{{1, 0, `{"a":"x` + "\ufffd" + `"}`, ""}}},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", []row{{1, 0, `{"a":"` + "\ufffd" + `"}`, ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rows(t, test.content)); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
		})
	}
}

// A record that is nested too deeply for an event is rejected, and the record after it
// is read.
func TestRecordsThatAreNestedDeeply(t *testing.T) {
	nested := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
	}
	got := rows(t, nested(MaxDepth)+nested(MaxDepth+1)+"{\"a\":1}\n"+nested(9999)+"\n{\"\xff\":"+nested(MaxDepth)+"}{}\n")
	rejected := errDeep.Error()
	want := []row{
		{Line: 1, Value: nested(MaxDepth)}, {Line: 1, Offset: 2004, Rejected: rejected}, {Line: 1, Offset: 4010, Value: `{"a":1}`},
		{Line: 2, Offset: 4018, Rejected: rejected}, {Line: 3, Offset: 24021, Rejected: rejected}, {Line: 3, Offset: 26031, Value: `{}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%.2000s", diff)
	}
}

func TestRecordsOfManyMegabytes(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 5<<16)
	content := `{"a":1}` + "\n" + `{"b":"` + body + `"}` + "\n" + `{"c":3}`
	got := rows(t, content)
	if len(got) != 3 || len(got[1].Value) != len(body)+8 || got[2].Line != 3 || got[2].Value != `{"c":3}` {
		t.Errorf("%d records; the last is %+v", len(got), got[len(got)-1])
	}
}

func TestRecordsOfAFileThatGrows(t *testing.T) {
	src := text("f", "{\"a\":1}\n{\"a\":2}\n")
	src.Size = 8
	n := 0
	for _, err := range Records(src) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d records of a file that had 1 when it was opened", n)
	}
}

func TestRecordsEndWithAReadError(t *testing.T) {
	failed := errors.New("disk on fire")
	src := interop.Source{Name: "f", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader("{\"a\":1}\n"), readerFunc(func([]byte) (int, error) { return 0, failed }))), nil
	}}
	var errs []error
	for _, err := range Records(src) {
		errs = append(errs, err)
	}
	if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], failed) {
		t.Errorf("got %v, want a record and then %v", errs, failed)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func FuzzRecords(f *testing.F) {
	f.Add([]byte("{\"a\":1}{\"b\":2}\n{\"c\"\r\n\xef\xbb\xbf\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		last := int64(-1)
		for r, err := range Records(text("f", string(b))) {
			if err != nil {
				continue
			}
			if r.Offset <= last || r.Offset+r.Size > int64(len(b)) {
				t.Fatalf("record at %d, %d bytes, after one at %d", r.Offset, r.Size, last)
			}
			if line := int64(bytes.Count(b[:r.Offset], []byte{'\n'})) + 1; line != r.Line {
				t.Fatalf("record at %d is on line %d, not %d", r.Offset, line, r.Line)
			}
			if !r.Value.IsValid() {
				t.Fatalf("record at %d is not valid: %s", r.Offset, r.Value)
			}
			last = r.Offset
		}
	})
}

// A line is searched for its end once, whatever is in it and before it.
func TestManyRecordsBeforeCarriageReturns(t *testing.T) {
	const n = 200_000
	line := strings.Repeat("[]", n) + strings.Repeat("\r", 4_000_000) + "\n"
	for _, content := range []string{"[]\n" + line, "[\n]" + line} { // read by lines, or whole
		got := 0
		for _, err := range Values(text("f", content)) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}
		if got != n+1 {
			t.Errorf("%d records", got)
		}
	}
}

// setMaxRecord changes the limit of a record until the end of a test.
func setMaxRecord(t *testing.T, most int64) {
	was := maxRecord
	t.Cleanup(func() { maxRecord = was })
	maxRecord = most
}

// A line over the limit is rejected with its place and its length, and the other lines
// are records.
func TestLongLines(t *testing.T) {
	setMaxRecord(t, 100<<10) // longer than the buffer of the reader
	long := `{"a":"` + strings.Repeat("x", 300<<10) + "\"}\n"
	fits := `{"a":"` + strings.Repeat("x", 90<<10) + "\"}\n"
	rejected := "307209 bytes, over the limit of 102400 bytes"
	for name, test := range map[string]struct {
		content string
		want    []row
	}{
		"first": {long + "{}\n", []row{{1, 0, "", rejected}, {2, 307209, "{}", ""}}},
		"last":  {"{}\n" + long, []row{{1, 0, "{}", ""}, {2, 3, "", rejected}}},
		"between long records": {fits + long + fits, []row{
			{1, 0, strings.TrimSpace(fits), ""}, {2, int64(len(fits)), "", rejected}, {3, int64(len(fits) + len(long)), strings.TrimSpace(fits), ""}}},
	} {
		if diff := cmp.Diff(test.want, rows(t, test.content)); diff != "" {
			t.Errorf("%s (+):\n%s", name, diff)
		}
		lines := 0
		for _, err := range Lines(text("f", test.content)) {
			if lines++; err != nil {
				t.Error(err)
			}
		}
		if lines != len(test.want)-1 {
			t.Errorf("%s: Lines yields %d lines", name, lines)
		}
	}
}

// A document over the limit is one rejected record. A long first line does not hide the
// lines after it.
func TestLongDocuments(t *testing.T) {
	setMaxRecord(t, 1000)
	text := strings.Repeat("x", 2000)
	for content, want := range map[string][]string{
		"{\n\"a\":\n\"" + text + "\"}\n":               {"1@0 2011 bytes, over the limit of 1000 bytes"},
		"[" + strings.Repeat("1,\n", 500):              {"1@0 1501 bytes, over the limit of 1000 bytes"},
		"[\"" + text + "\"]\n[2]\n":                    {"1@0 2005 bytes, over the limit of 1000 bytes", "2@2005 [2]"},
		"[1]\n[\"" + text + "\"]\n[2]\n":               {"1@0 [1]", "2@4 2005 bytes, over the limit of 1000 bytes", "3@2009 [2]"},
		"{\"a\n" + strings.Repeat("[1]\n", 300)[:1196]: nil, // see below
	} {
		var got []string
		for rec, err := range Values(interop.Source{Name: "f", Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}) {
			var rejected *RecordError
			switch {
			case err == nil:
				got = append(got, fmt.Sprintf("%d@%d %s", rec.Line, rec.Offset, rec.Value))
			case errors.As(err, &rejected):
				got = append(got, fmt.Sprintf("%d@%d %v", rejected.Line, rejected.Offset, rejected.Cause))
			default:
				t.Fatal(err)
			}
		}
		if want == nil { // a bad first line rejects itself only
			if len(got) != 300 {
				t.Errorf("%d values after a bad first line", len(got))
			}
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(+):\n%s", diff)
		}
	}
}

package mcplog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
)

// answer is the document of an answer.
type answer struct {
	Quoted string           `json:"quoted"`
	Part   *part            `json:"part"`
	Rows   []jsontext.Value `json:"rows"`
	Note   string           `json:"note"`
	Error  string           `json:"error"`
	Next   string           `json:"next"`
}

type part struct {
	Byte  int    `json:"byte"`
	Bytes int    `json:"bytes"`
	Text  string `json:"text"`
}

// printing is a tool that prints lines in writes of a size.
func printing(lines []string, size int, key ...string) *Tool {
	return &Tool{Name: "print", Key: key, Run: func(_ context.Context, _ Args, out, _ io.Writer) error {
		text := strings.Join(lines, "\n") + "\n"
		for len(text) > 0 {
			n := min(size, len(text))
			if _, err := io.WriteString(out, text[:n]); err != nil {
				return err
			}
			text = text[n:]
		}
		return nil
	}}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// call calls a tool and checks that its answer is within the budget.
func call(t failer, tool *Tool, args string, budget int) answer {
	t.Helper()
	text, _ := tool.call(context.Background(), []byte(args))
	if got := Tokens(text); got > budget {
		t.Fatalf("%d tokens, budget %d: %.300s", got, budget, text)
	}
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	if a.Quoted != quoted || !strings.HasPrefix(text, `{"quoted":`) {
		t.Fatalf("the answer has no mark: %.300s", text)
	}
	if strings.IndexFunc(text, hidden) >= 0 || strings.ContainsAny(text, "<>\n") {
		t.Fatalf("the answer has characters that it escapes: %.300q", text)
	}
	return a
}

// all collects the rows of all answers.
func all(t failer, tool *Tool, budget int, full bool) (rows []string) {
	t.Helper()
	args := map[string]any{"max_tokens": budget, "full": full}
	row := ""
	for {
		in, err := json.Marshal(args)
		if err != nil {
			t.Fatalf("%v", err)
		}
		a := call(t, tool, string(in), budget)
		if a.Error != "" {
			t.Fatalf("error %q", a.Error)
		}
		if a.Part != nil {
			if a.Part.Byte != len(row) {
				t.Fatalf("a part begins at %d, the one before ended at %d", a.Part.Byte, len(row))
			}
			if row += a.Part.Text; len(row) == a.Part.Bytes {
				rows, row = append(rows, row), ""
			}
		}
		for _, r := range a.Rows {
			rows = append(rows, string(r))
		}
		if a.Next == "" {
			return rows
		}
		if len(a.Rows) == 0 && (a.Part == nil || a.Part.Text == "") {
			t.Fatalf("an answer without progress")
		}
		args["cursor"] = a.Next
	}
}

// hostile generates texts of the kinds that break budgets and quotations.
func hostile() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.SampledFrom([]string{"a", "word ", `"`, `\`, "\n", "<system-reminder>", "</result>", `"}],"error":"x`, "検索", "😀", "\u202e", "\U000e0041", "\ufe0f",
			"\x1b[31m", "\x7f", "0123456789abcdef", "\u2028", "\uffff", "é", "{}[]", "&"}).Draw(t, "piece")
		return strings.Repeat(piece, rapid.SampledFrom([]int{0, 1, 3, 100, 1_500}).Draw(t, "times"))
	})
}

// The answers of all cursors together have every row, whole and in order, and none is beyond its
// budget.
func TestAnswersAreWithinBudgetAndWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var lines, want []string
		for i, text := range rapid.SliceOfN(hostile(), 0, 8).Draw(t, "texts") {
			line, err := json.Marshal(map[string]any{"id": i, "text": text + hostile().Draw(t, "more")}, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
			row, err := rewrite(line, true)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, string(row))
		}
		var key []string
		if rapid.Bool().Draw(t, "moving") {
			key = []string{"id"}
		}
		tool := printing(lines, rapid.SampledFrom([]int{7, 64 << 10}).Draw(t, "write"), key...)
		if len(lines) == 0 {
			tool = &Tool{Name: "nothing", Run: func(context.Context, Args, io.Writer, io.Writer) error { return nil }}
		}
		budget := rapid.SampledFrom([]int{leastBudget, usualBudget, mostBudget}).Draw(t, "budget")
		if got := all(t, tool, budget, true); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("got %d rows, want %d", len(got), len(want))
		}
		all(t, tool, budget, false)
	})
}

// Rewriting a row keeps its value.
func TestRewriteKeepsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := hostile().Draw(t, "text")
		line, err := json.Marshal([]any{want, int64(12345678901234567), 1.50, nil, true})
		if err != nil {
			t.Fatal(err)
		}
		row, err := rewrite(line, true)
		if err != nil {
			t.Fatal(err)
		}
		var got []jsontext.Value
		if err := json.Unmarshal(row, &got); err != nil {
			t.Fatalf("%v: %s", err, row)
		}
		var text string
		if err := json.Unmarshal(got[0], &text); err != nil || text != want || string(got[1]) != "12345678901234567" {
			t.Fatalf("%q became %s", want, row)
		}
	})
}

// A long text is cut at a character, and says its length.
func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("検", clipAfter+1)
	if got := clip(long); !strings.HasPrefix(long, got[:3*clipAfter]) || !strings.Contains(got, "2000 of 2001 characters") {
		t.Errorf("cut to %.30s…%s", got, got[3*clipAfter:])
	}
	for _, text := range []string{"", "short", strings.Repeat("検", clipAfter)} {
		if got := clip(text); got != text {
			t.Errorf("%.20s is cut", text)
		}
	}
}

// Errors and notes are cut to their share of the budget, however many rows there are.
func TestMessagesAreWithinBudget(t *testing.T) {
	long := strings.Repeat(`"<検😀\`, 1_000)
	var lines []string
	for range 40 {
		lines = append(lines, `{"a":"0123456789"}`)
		tool := printing(lines, 100)
		run := tool.Run
		tool.Run = func(ctx context.Context, args Args, out, notes io.Writer) error {
			if _, err := io.WriteString(notes, long); err != nil {
				return err
			}
			if err := run(ctx, args, out, notes); err != nil {
				return err
			}
			return errors.New(long)
		}
		a := call(t, tool, `{"max_tokens":500}`, leastBudget)
		if a.Note == "" || (a.Next == "") == (a.Error == "") {
			t.Errorf("error %q, note %q, next %q, %d rows", a.Error, a.Note, a.Next, len(a.Rows))
		}
	}
}

// A wrong call is an error that says what is right.
func TestWrongCalls(t *testing.T) {
	tool := printing([]string{`{"id":1}`, `{"id":2,"text":"` + strings.Repeat("x", 30_000) + `"}`, `{"id":3}`}, 100, "id")
	tool.Params = []Param{{Name: "session", Kind: Text, Required: true}, {Name: "types", Kind: Texts}}
	first := call(t, tool, `{"session":"s","full":true,"max_tokens":500}`, 500)
	second := call(t, tool, `{"session":"s","full":true,"max_tokens":500,"cursor":"`+first.Next+`"}`, 500)
	if second.Part == nil || second.Next == "" {
		t.Fatalf("no part: %+v", second)
	}
	for _, tt := range []struct{ args, want string }{
		{`[]`, "no JSON object"},
		{`{}`, "needs the parameter session"},
		{`{"session":""}`, "needs the parameter session"},
		{`{"session":{}}`, "of type string"},
		{`{"session":"s","types":[1]}`, "of type array"},
		{`{"session":"s","other":1}`, `has no parameter "other"; it has session, types`},
		{`{"session":"s","max_tokens":"many"}`, "of type integer"},
		{`{"session":"s","max_tokens":499}`, "500 to 20000"},
		{`{"session":"s","max_tokens":20001}`, "500 to 20000"},
		{`{"session":"s","full":"perhaps"}`, "of type boolean"},
		{`{"session":"s","cursor":"x"}`, "not of this call"},
		{`{"session":"s","cursor":"1.2.3.4.5.6"}`, "not of this call"},
		{`{"session":"other","full":true,"cursor":"` + first.Next + `"}`, "not of this call"},
		{`{"session":"s","full":false,"cursor":"` + first.Next + `"}`, "not of this call"},
	} {
		if a := call(t, tool, tt.args, leastBudget); !strings.Contains(a.Error, tt.want) || len(a.Rows) > 0 {
			t.Errorf("%s: %q, want %q", tt.args, a.Error, tt.want)
		}
	}
	// The row of a cursor is removed, or changes between its parts.
	for name, lines := range map[string][]string{"removed": {`{"id":1}`, `{"id":3}`}, "changed": {`{"id":1}`, `{"id":2,"text":"y"}`}} {
		changed := *tool
		changed.Run = printing(lines, 100).Run
		a := call(t, &changed, `{"session":"s","full":true,"cursor":"`+second.Next+`"}`, usualBudget)
		if !strings.Contains(a.Error, "has changed or is missing") {
			t.Errorf("%s: %q", name, a.Error)
		}
	}
	// Rows without a key do not move.
	still := *tool
	still.Key = nil
	a := call(t, &still, `{"session":"s","full":true,"max_tokens":500}`, 500)
	still.Run = printing([]string{`{"id":0}`, `{"id":1}`, `{"id":2}`}, 100).Run
	if a = call(t, &still, `{"session":"s","full":true,"cursor":"`+a.Next+`"}`, usualBudget); !strings.Contains(a.Error, "has changed") {
		t.Errorf("moved: %q", a.Error)
	}
}

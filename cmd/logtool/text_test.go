package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/interop"
)

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "検索": 4, "한국": 4, "👍": 2, "ｆｕｌｌ": 8, "a\u200bb": 2, "…→": 2} {
		if got := columns(text); got != want {
			t.Errorf("%q has %d columns, want %d", text, got, want)
		}
	}
}

func TestBriefCutsByColumns(t *testing.T) {
	for text, want := range map[string]string{"検索検索": "検索…", "検索a": "検索a", "ab検索": "ab検…", "e\u0301e\u0301e\u0301e\u0301e\u0301e\u0301": "e\u0301e\u0301e\u0301e\u0301…"} {
		if got := brief(text, 5); got != want {
			t.Errorf("brief(%q) is %q, want %q", text, got, want)
		}
	}
}

func TestWideCellsAlign(t *testing.T) {
	var b strings.Builder
	p := &printer{Printer: term.NewPrinter(&b, term.Options{})}
	p.Table([]string{"A", "B"}, [][]string{{"検索", "1"}, {"abcd", "2"}})
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "A     B\n検索  1\nabcd  2\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		before time.Duration
		want   string
	}{
		{0, "just now"},
		{59 * time.Second, "just now"},
		{time.Minute, "1 min ago"},
		{119 * time.Minute, "1 h ago"},
		{47 * time.Hour, "47 h ago"},
		{49 * time.Hour, "2 days ago"},
		{29 * 24 * time.Hour, "29 days ago"},
	}
	for _, test := range tests {
		if got := ago(test.before, now.Add(-test.before)); got != test.want {
			t.Errorf("ago(%v) = %q, want %q", test.before, got, test.want)
		}
	}
	for _, d := range []time.Duration{-time.Minute, 30 * 24 * time.Hour} {
		at := now.Add(-d)
		if got, want := ago(d, at), at.Local().Format("2006-01-02 15:04"); got != want {
			t.Errorf("ago(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 1 << 60: "1024.0 PiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 events", 1: "1 event", 2000: "2,000 events"} {
		if got := count(n, "event"); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}

// A transcript can contain any characters. It must not control the terminal.
func TestCleanMakesControlCharactersVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain é\ttext":     "plain é\ttext",
		"\x1b[2Jgone":       `\x1b[2Jgone`,
		"bell\a\x7f\u009b1": `bell\x07\x7f\x9b1`,
		"two\nlines":        `two\x0alines`,
		"a\u202etxt.exe":    `a\u202etxt.exe`,
	} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

// JSON must not control the terminal. JSON for a program is not changed.
func TestJSONOnATerminal(t *testing.T) {
	const text = "{\n  \"a\": \"é\u009b2J\x7f\u202e\"\n}"
	for terminal, want := range map[bool]string{true: "{\n  \"a\": \"é\\u009b2J\\u007f\\u202e\"\n}\n", false: text + "\n"} {
		var out strings.Builder
		p := &printer{Printer: term.NewPrinter(&out, term.Options{Terminal: terminal})}
		if err := errors.Join(p.Raw([]byte(text)), p.Flush()); err != nil || out.String() != want {
			t.Errorf("got %q, want %q, %v", out.String(), want, err)
		}
		out.Reset()
		if err := errors.Join(p.Value("\u009b"), p.Flush()); err != nil || strings.Contains(out.String(), "\u009b") == terminal {
			t.Errorf("got %q, %v", out.String(), err)
		}
	}
}

// Nothing that a command prints to a terminal controls it. A file gets the exact bytes.
func TestOutputOnATerminal(t *testing.T) {
	const evil = "\x1b[2J\u009b\u202e\x9b"
	table := &interop.Table{Rows: []interop.Row{{Path: evil, Err: errors.New(evil)}, {Path: evil, Err: errors.New(evil)}}, Skipped: []string{evil}}
	for _, onTerminal := range []bool{true, false} {
		var out strings.Builder
		a := &app{out: &out, getenv: func(string) string { return "" }, now: time.Now}
		if onTerminal {
			a.pager = &term.Pager{}
		}
		if err := a.printTable(table, true); err != nil {
			t.Fatal(err)
		}
		p := a.printer()
		p.Printf("%s %s\n", evil, p.Paint(term.Bold, "bold")) // a forgotten clean
		if err := p.Flush(); err != nil {
			t.Fatal(err)
		}
		if onTerminal != strings.Contains(out.String(), "\x1b[1mbold\x1b[0m") {
			t.Errorf("terminal %v: %q", onTerminal, out.String())
		}
		begun := out.Len()
		if err := a.output("-", func(w io.Writer) error { _, err := io.WriteString(w, evil); return err }); err != nil {
			t.Fatal(err)
		}
		if exact := out.String()[begun:] == evil; exact == onTerminal {
			t.Errorf("terminal %v: exported %q", onTerminal, out.String()[begun:])
		}
		plain := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "", "\x1b[2m", "").Replace(out.String())
		for _, control := range []string{"\x1b", "\u009b", "\u202e"} {
			if onTerminal && (strings.Contains(plain, control) || !utf8.ValidString(plain)) {
				t.Errorf("control characters in %q", out.String())
			}
		}
	}
}

func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"short":            "short",
		" a\n b\t c ":      "a b c",
		"éééééééééé":       "éééééééééé",
		"ééééééééééé":      "ééééééééé…",
		"123456789 012345": "123456789…",
	} {
		if got := brief(text, 10); got != want {
			t.Errorf("brief(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var out strings.Builder
	p := &printer{Printer: term.NewPrinter(&out, term.Options{})}
	p.Table([]string{"ID", "N", "TITLE"}, [][]string{{"é", "1", "x"}, {"long", "1,000", ""}, {strings.Repeat("i", 81), "7", "y"}}, 1)
	if err := p.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "ID        N  TITLE\né         1  x\nlong  1,000\n" + strings.Repeat("i", 81) + "      7  y\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"order-42": "order-42", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "x;rm": "'x;rm'",
	} {
		if got := shellWord(word); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", word, got, want)
		}
	}
}

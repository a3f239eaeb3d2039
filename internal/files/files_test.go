package files_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	_ "github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/memory"
)

// tools is a program with one tool of each kind.
var tools = files.Tools{
	"read":   {Does: files.Reads, Path: "path", Sees: func(r *files.Result) (s files.Seen) { return sees(r) }},
	"write":  {Does: files.Writes, Path: "path", Text: "text"},
	"edit":   {Does: files.Edits, Path: "path", Old: "old", Text: "new", All: "all", Edits: "edits", Sees: sees},
	"patch":  {Does: files.Patches, Text: "patch"},
	"blocks": {Does: files.Blocks, Path: "path", Text: "diff"},
	"insert": {Does: files.Inserts, Path: "path", Line: "line", Text: "text"},
	"cell":   {Does: files.Changes, Path: "path", Text: "text"},
	"delete": {Does: files.Deletes, Path: "path"},
	"run":    {Does: files.Runs, Text: "cmd", Folder: "folder", Sees: output},
	"python": {Does: files.Acts, Text: "code"},
	"editor": files.TextEditor(),
}

// sees reads a result "from N\n" and lines, or "was\n" and the text before, or a whole text.
func sees(r *files.Result) (s files.Seen) {
	text := r.Text()
	if lines, ok := strings.CutPrefix(text, "from "); ok {
		_, _ = fmt.Sscan(lines, &s.From)
		_, s.Lines, _ = strings.Cut(lines, "\n")
	} else if before, ok := strings.CutPrefix(text, "was\n"); ok {
		s.Before = &before
	} else if text != "" {
		s.After = &text
	}
	return s
}

func output(r *files.Result) (s files.Seen) {
	text := r.Text()
	s.After = &text
	return s
}

// did is a call with its result; a result "!…" is an error, and "-" is none.
type did struct{ tool, arguments, result string }

// session appends calls to a new session, and returns what they did.
func session(t *testing.T, calls ...did) []files.Change {
	t.Helper()
	log := eventlog.Open(memory.New())
	add := func(p event.Payload) {
		t.Helper()
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.New(p)); err != nil {
			t.Fatal(err)
		}
	}
	add(event.Session{CWD: "/home/ada", Source: event.SessionSource{Format: "test"}})
	for i, c := range calls {
		id := fmt.Sprint("c", i)
		add(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, c.tool, jsontext.Value(c.arguments))}})
		if c.result == "-" {
			continue
		}
		text, failed := strings.CutPrefix(c.result, "!")
		r := event.ToolResult(id, c.tool, event.Text(text))
		r.IsError = failed
		add(event.Message{Role: event.Tool, Parts: []event.Part{r}})
	}
	var all []files.Change
	for c, err := range files.Of(t.Context(), log, "s", eventlog.All(), func(string) files.Tools { return tools }) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// text describes changes in lines.
func text(all []files.Change) string {
	var b strings.Builder
	state := func(s files.State) string {
		switch {
		case s.Absent:
			return "absent"
		case s.Known:
			return fmt.Sprintf("%q", s.Text)
		}
		return "?"
	}
	for _, c := range all {
		fmt.Fprintf(&b, "%s %s", c.Does, c.Path)
		if c.To != "" {
			fmt.Fprintf(&b, " to %s", c.To)
		}
		if c.Does != files.Run {
			fmt.Fprintf(&b, " %s", state(c.Before))
			if c.After != c.Before {
				fmt.Fprintf(&b, " -> %s", state(c.After))
			}
		}
		if c.Failed {
			b.WriteString(" failed")
		}
		if c.Result == 0 {
			b.WriteString(" open")
		}
		if c.Gap != nil {
			fmt.Fprintf(&b, " gap %d %v", c.Gap.After, c.Gap.Commands)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestChanges(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls []did
		want  string
	}{
		{"a write and an edit", []did{
			{"write", `{"path":"a.go","text":"one\ntwo\n"}`, "ok"},
			{"edit", `{"path":"/home/ada/a.go","old":"two","new":"2"}`, ""},
			{"read", `{"path":"./a.go"}`, "one\n2\n"},
		}, `
write /home/ada/a.go ? -> "one\ntwo\n"
edit /home/ada/a.go "one\ntwo\n" -> "one\n2\n"
read /home/ada/a.go "one\n2\n"
`},
		{"every place, and edits in turn", []did{
			{"write", `{"path":"a","text":"x x y"}`, "ok"},
			{"edit", `{"path":"a","old":"x","new":"z","all":true}`, ""},
			{"edit", `{"path":"a","edits":[{"old":"z","new":"q"},{"old":"q z","new":"!"}]}`, ""},
		}, `
write /home/ada/a ? -> "x x y"
edit /home/ada/a "x x y" -> "z z y"
edit /home/ada/a "z z y" -> "! y"
`},
		{"an edit of an unknown text", []did{
			{"edit", `{"path":"a","old":"x","new":"z"}`, ""},
			{"edit", `{"path":"a","old":"x","new":"z"}`, "was\nx\n"},
		}, `
edit /home/ada/a ?
edit /home/ada/a "x\n" -> "z\n"
`},
		{"a failed change changes nothing, and an open one is unknown", []did{
			{"write", `{"path":"a","text":"x"}`, "ok"},
			{"edit", `{"path":"a","old":"y","new":"z"}`, "!not found"},
			{"write", `{"path":"a","text":"y"}`, "-"},
		}, `
write /home/ada/a ? -> "x"
edit /home/ada/a "x" failed
write /home/ada/a "x" -> ? open
`},
		{"a gap: another program changed the file", []did{
			{"write", `{"path":"a","text":"x\n"}`, "ok"},
			{"edit", `{"path":"a","old":"q","new":"z"}`, "!not found"},
			{"read", `{"path":"a"}`, "y\n"},
			{"edit", `{"path":"a","old":"z","new":"q"}`, "was\nz\n"},
		}, `
write /home/ada/a ? -> "x\n"
edit /home/ada/a "x\n" failed
read /home/ada/a "y\n" gap 3 []
edit /home/ada/a "z\n" -> "q\n" gap 7 []
`},
		{"a gap that a command may have made", []did{
			{"write", `{"path":"a","text":"x\n"}`, "ok"},
			{"run", `{"cmd":"make generate"}`, ""},
			{"python", `{"code":"open('a')"}`, ""},
			{"read", `{"path":"a"}`, "from 1\ny\n"},
			{"read", `{"path":"a"}`, "from 2\nz\n"},
		}, `
write /home/ada/a ? -> "x\n"
run 
run 
read /home/ada/a ? gap 3 [4 6]
read /home/ada/a ?
`},
		{"an edit that the known text does not have", []did{
			{"write", `{"path":"a","text":"x\n"}`, "ok"},
			{"edit", `{"path":"a","old":"y","new":"z"}`, ""},
		}, `
write /home/ada/a ? -> "x\n"
edit /home/ada/a ? gap 3 []
`},
		{"a read of some lines, and of a file with carriage returns", []did{
			{"write", `{"path":"a","text":"1\r\n2\r\n3\r\n"}`, "ok"},
			{"read", `{"path":"a"}`, "from 2\n2\n3"},
			{"read", `{"path":"a"}`, "from 9\n"},
		}, `
write /home/ada/a ? -> "1\r\n2\r\n3\r\n"
read /home/ada/a "1\r\n2\r\n3\r\n"
read /home/ada/a "1\r\n2\r\n3\r\n"
`},
		{"a patch", []did{
			{"patch", `"*** Begin Patch\n*** Add File: a.go\n+one\n+two\n+three\n*** End Patch"`, "ok"},
			{"patch", `{"patch":"*** Begin Patch\n*** Update File: a.go\n@@\n one\n-two\n+2\n*** Update File: b.go\n@@ func x\n-y\n+z\n*** Delete File: c.go\n*** End Patch\n"}`, "ok"},
			{"patch", `"*** Begin Patch\n*** Update File: a.go\n*** Move to: sub/d.go\n@@\n three\n+four\n*** End of File\n*** End Patch"`, "ok"},
		}, `
write /home/ada/a.go ? -> "one\ntwo\nthree\n"
edit /home/ada/a.go "one\ntwo\nthree\n" -> "one\n2\nthree\n"
edit /home/ada/b.go ?
delete /home/ada/c.go ? -> absent
move /home/ada/a.go to /home/ada/sub/d.go "one\n2\nthree\n" -> "one\n2\nthree\nfour\n"
`},
		{"blocks", []did{
			{"write", `{"path":"a","text":"one\ntwo\n"}`, "ok"},
			{"blocks", `{"path":"a","diff":"<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE"}`, "ok"},
			{"blocks", `{"path":"a","diff":"------- SEARCH\none\n=======\n+++++++ REPLACE\n"}`, "ok"},
			{"blocks", `{"path":"a","diff":"<<<<<<< SEARCH\n:start_line:1\n-------\n2\n=======\n3\n>>>>>>> REPLACE"}`, "ok"},
		}, `
write /home/ada/a ? -> "one\ntwo\n"
edit /home/ada/a "one\ntwo\n" -> "one\n2\n"
edit /home/ada/a "one\n2\n" -> "2\n"
edit /home/ada/a "2\n" -> "3\n"
`},
		{"an insert, an editor, a notebook and a delete", []did{
			{"editor", `{"command":"create","path":"/a","file_text":"1\n2\n"}`, "ok"},
			{"editor", `{"command":"insert","path":"/a","insert_line":1,"new_str":"1½"}`, "ok"},
			{"editor", `{"command":"str_replace","path":"/a","old_str":"2","new_str":"3"}`, "ok"},
			{"editor", `{"command":"undo_edit","path":"/a"}`, "ok"},
			{"editor", `{"command":"view","path":"/a"}`, "ok"},
			{"editor", `{"command":"dance","path":"/a"}`, "ok"},
			{"cell", `{"path":"n.ipynb","text":"print(1)"}`, "ok"},
			{"delete", `{"path":"/a"}`, "ok"},
		}, `
write /a ? -> "1\n2\n"
edit /a "1\n2\n" -> "1\n1½\n2\n"
edit /a "1\n1½\n2\n" -> "1\n1½\n3\n"
edit /a "1\n1½\n3\n" -> ?
read /a ?
edit /home/ada/n.ipynb ?
delete /a ? -> absent
`},
		{"a tool that is not known, and arguments of another shape", []did{
			{"other", `{"path":"a"}`, "ok"}, {"write", `{"path":["a"]}`, "ok"}, {"read", `{"path":17}`, "ok"}, {"edit", `"text"`, "ok"}, {"patch", `{}`, "ok"}, {"run", `[]`, "ok"},
		}, "\n"},
	} {
		if got := "\n" + text(session(t, c.calls...)); got != c.want {
			t.Errorf("%s:%s\nwant:%s", c.name, got, c.want)
		}
	}
}

// What a shell command does to files.
func TestShell(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"cat a.go", "read a.go"},
		{"cat a.go b.go | head -5", "read a.go, read b.go"},
		{"sed -n '1,20p' a.go", "read a.go"},
		{"nl -ba a.go | sed -n 3,9p", "read a.go"},
		{"head -n 20 a.go && tail -5 b.go", "read a.go, read b.go"},
		{"cd sub && cat a.go", "read sub/a.go"},
		{"ls; git status; git diff --stat; grep -rn x . 2>/dev/null; echo done", ""},
		{"echo hello > a.txt", `write a.txt "hello\n"`},
		{"echo hello >> a.txt", "edit a.txt"},
		{"cat > a.txt <<'EOF'\none $HOME\n\ntwo\nEOF\ncat a.txt", `write a.txt "one $HOME\n\ntwo\n", read a.txt`},
		{"cat <<EOF > a.txt\none\nEOF", `write a.txt "one\n"`},
		{"cat <<EOF > a.txt\n$HOME\nEOF", "edit a.txt"},
		{"cat <<-EOF > a.txt\n\tone\n\tEOF", `write a.txt "one\n"`},
		{"> a.txt", `write a.txt ""`},
		{"sort b.txt > a.txt 2>&1", "edit a.txt"},
		{"make 2> log.txt", "run"},
		{"printf x | tee a.txt", "edit a.txt"},
		{"sed -i 's/a/b/' a.go", "edit a.go"},
		{"sed -i '' -e 's/a/b/' a.go", "edit a.go"},
		{"sed -i '' 's/a/b/' a.go", "edit a.go"},
		{"perl -pi -e 's/a/b/' a.go", "edit a.go"},
		{"gofmt -w a.go b.go", "edit a.go, edit b.go"},
		{"rm -f a.go", "delete a.go"},
		{"rm -rf sub", "delete sub, run"},
		{"mv a.go b.go", "move a.go to b.go"},
		{"git mv a.go b.go", "move a.go to b.go"},
		{"git checkout -- a.go", "edit a.go"},
		{"git checkout main", "run"},
		{"go test ./...", "run"},
		{"for f in *.go; do gofmt -w $f; done", "run"},
		{"bash -lc 'cat a.go'", "read a.go"},
		{"cat $FILE", ""},
		{"cat `which x` > $OUT", "run"},
		{"GOFLAGS=-mod=mod sudo cat 'a b.go'", "read a b.go"},
		{"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a.go\n+x\n*** End Patch\nEOF", `write a.go "x\n"`},
		{"# cat a.go", ""},
		{"", ""},
		{"cat \"a", "read a"},
		{"cat <<EOF", ""},
	} {
		arguments, err := jsontext.AppendQuote([]byte(`{"cmd":`), c.command)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, x := range session(t, did{"run", string(append(arguments, '}')), ""}) {
			word := strings.TrimSpace(fmt.Sprint(x.Does, " ", files.Below("/home/ada", x.Path)))
			if x.To != "" {
				word += " to " + files.Below("/home/ada", x.To)
			}
			if x.Changes() && x.After.Known && !x.After.Absent {
				word += fmt.Sprintf(" %q", x.After.Text)
			}
			words = append(words, word)
		}
		if got := strings.Join(words, ", "); got != c.want {
			t.Errorf("%s: %s, want %s", c.command, got, c.want)
		}
	}
}

// Lines that a command prints are compared with the known text.
func TestShellReads(t *testing.T) {
	write := did{"write", `{"path":"a","text":"1\n2\n3\n"}`, "ok"}
	for _, c := range []struct {
		command, output string
		gap             bool
	}{
		{"cat a", "1\n2\n3\n", false},
		{"cat a", "1\n2\n", true},
		{"sed -n '2,3p' a", "2\n3\n", false},
		{"sed -n '2,3p' a", "3\n", true},
		{"sed -n '2,$p' a", "2\n3\n", false},
		{"sed -n '2p;3p' a", "x\n", false},
		{"nl -ba a", "     1\t1\n     2\t2\n     3\t3\n", false},
		{"nl -ba a", "     1\t1\n     2\tx\n", true},
		{"cat a | grep 2", "2\n", false},
		{"cat a; ls", "1\n2\n3\na\n", false},
	} {
		all := session(t, write, did{"run", fmt.Sprintf(`{"cmd":%q}`, c.command), c.output})
		if got := all[1].Gap != nil; got != c.gap {
			t.Errorf("%s: gap %v, want %v", c.command, got, c.gap)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ name, path string }{
		{"a.go", "/x/a.go"}, {"x/a.go", "/x/a.go"}, {"/x/a.go", "/x/a.go"}, {"./a.go", "/x/a.go"}, {"x/", "/x/a.go"}, {"/x/", "/x/a.go"}, {`x\a.go`, "C:/x/a.go"},
	} {
		if !files.Matches(c.name, c.path) {
			t.Errorf("%s is not %s", c.name, c.path)
		}
	}
	for _, c := range []struct{ name, path string }{{"go", "/x/a.go"}, {"b/a.go", "/x/a.go"}, {"a/", "/xa/a.go"}, {"/a.go", "/x/a.go"}} {
		if files.Matches(c.name, c.path) {
			t.Errorf("%s is %s", c.name, c.path)
		}
	}
	all := session(t, did{"write", `{"path":"C:\\x\\..\\a.go","text":""}`, "ok"}, did{"write", `{"path":"~/a.go","text":""}`, "ok"}, did{"run", `{"cmd":"cat a","folder":"/tmp"}`, ""})
	if all[0].Path != "C:/a.go" || all[1].Path != "~/a.go" || all[2].Path != "/tmp/a" {
		t.Error(text(all))
	}
}

// A change between unknown states lists the lines of the arguments.
func TestHunksOfUnknownStates(t *testing.T) {
	all := session(t, did{"edit", `{"path":"a","old":"one\ntwo","new":"one\n2"}`, ""},
		did{"patch", `"*** Begin Patch\n*** Update File: b\n@@\n x\n-y\n+z\n*** End Patch"`, "ok"})
	for i, want := range []string{" one|-two|+2", " x|-y|+z"} {
		hunks := all[i].Hunks()
		if len(hunks) != 1 || hunks[0].Heading() != "@@" || strings.Join(hunks[0].Lines, "|") != want {
			t.Errorf("%d: %+v", i, hunks)
		}
	}
}

// A sub-agent may have changed files until its end.
func TestSubAgents(t *testing.T) {
	log := eventlog.Open(memory.New())
	for _, p := range []event.Payload{
		event.Session{CWD: "/w", Source: event.SessionSource{Format: "test"}},
		event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c1", "write", jsontext.Value(`{"path":"a","text":"x"}`))}},
		event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c1", "write", event.Text("ok"))}},
		event.Child{State: event.ChildStarted, ChildID: "1", ChildSessionID: "s.agent"},
		event.Child{State: event.ChildCompleted, ChildID: "1", ChildSessionID: "s.agent"},
		event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall("c2", "read", jsontext.Value(`{"path":"a"}`))}},
		event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult("c2", "read", event.Text("y"))}},
	} {
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.New(p)); err != nil {
			t.Fatal(err)
		}
	}
	var all []files.Change
	for c, err := range files.Of(t.Context(), log, "s", eventlog.All(), func(string) files.Tools { return tools }) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if len(all) != 3 || all[1].Does != files.Agent || all[1].Child != "s.agent" || all[1].Changes() || all[2].Gap == nil || fmt.Sprint(*all[2].Gap) != "{3 [5]}" {
		t.Errorf("%+v", all)
	}
}

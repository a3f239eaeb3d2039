package formats_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/store/memory"
)

// fileCall is a call as an importer stores it.
type fileCall struct {
	tool, arguments, result string
	extra                   string // of the result
	beside                  string // the extra of its message
}

// The tools of each format read and change files.
func TestFileTools(t *testing.T) {
	for _, c := range []struct {
		format string
		calls  []fileCall
		want   string
	}{
		{"claude", []fileCall{
			{"Read", `{"file_path":"/a"}`, "     1\tx", "", `{"toolUseResult":{"type":"text","file":{"filePath":"/a","content":"x\ny\n","numLines":3,"startLine":1,"totalLines":3}}}`},
			{"Edit", `{"file_path":"/a","old_string":"y","new_string":"z"}`, "updated", "", `{"toolUseResult":{"originalFile":"x\ny\n","structuredPatch":[]}}`},
			{"MultiEdit", `{"file_path":"/a","edits":[{"old_string":"x","new_string":"1"},{"old_string":"z","new_string":"2"}]}`, "updated", "", `{"toolUseResult":{"originalFileContents":"x\nz\n"}}`},
			{"Read", `{"file_path":"/a","offset":2,"limit":1}`, "     2\t2", "", `{"toolUseResult":{"type":"text","file":{"filePath":"/a","content":"2","numLines":1,"startLine":2,"totalLines":3}}}`},
			{"Write", `{"file_path":"/b","content":"new\n"}`, "created", "", `{"toolUseResult":{"type":"create","filePath":"/b","content":"new\n","originalFile":null}}`},
			{"Bash", `{"command":"cat /b"}`, "new", "", `{"toolUseResult":{"stdout":"new","stderr":""}}`},
			{"NotebookEdit", `{"notebook_path":"/n.ipynb","new_source":"1"}`, "updated", "", ""},
		}, `
read /a "x\ny\n"
edit /a "x\ny\n" -> "x\nz\n"
edit /a "x\nz\n" -> "1\n2\n"
read /a "1\n2\n"
write /b absent -> "new\n"
read /b "new\n"
edit /n.ipynb ?
`},
		{"codex", []fileCall{
			{"apply_patch", `"*** Begin Patch\n*** Add File: a\n+x\n+y\n*** End Patch"`, `{"output":"Success.","metadata":{"exit_code":0}}`, "", ""},
			{"exec_command", `{"cmd":"sed -n '1,2p' a","workdir":"/w"}`, "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nx\ny\n", "", ""},
			{"exec_command", `{"cmd":"cat a","workdir":"/w"}`, "Command: /bin/sh -lc \"cat a\"\nChunk ID: 2\nOutput:\nx\nother\n", "", ""},
			{"shell", `{"command":["bash","-lc","apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-other\n+z\n*** End Patch\nEOF"],"workdir":"/w"}`, `{"output":"Success.","metadata":{"exit_code":0}}`, "", ""},
			{"exec_command", `{"cmd":"cat a","workdir":"/w"}`, "Chunk ID: 3\nOutput:\nx\n…12 tokens truncated…\n", "", ""},
			{"write_stdin", `{"session_id":1,"chars":"y\n"}`, "", "", ""},
			{"exec", `"text(1)"`, "1", "", ""},
		}, `
write /w/a ? -> "x\ny\n"
read /w/a "x\ny\n"
read /w/a "x\nother\n" gap
edit /w/a "x\nother\n" -> "x\nz\n"
read /w/a "x\nz\n"
run
run
`},
		{"pi", []fileCall{
			{"read", `{"path":"a"}`, "x\ny\n", "", ""},
			{"edit", `{"path":"a","edits":[{"oldText":"x","newText":"1"},{"oldText":"y","newText":"2"}]}`, "Successfully replaced 2 block(s) in a.", "", ""},
			{"edit", `{"path":"a","oldText":"2","newText":"3"}`, "Successfully replaced text in a.", "", ""},
			{"read", `{"path":"a","offset":2}`, "3\n\n[4 more lines in file. Use offset=6 to continue.]", "", ""},
			{"write", `{"path":"b","content":"b"}`, "Successfully wrote 1 bytes to b", "", ""},
			{"read", `{"path":"c"}`, "c\n\n[Showing lines 1-1 of 9. Use offset=2 to continue.]", "", ""},
			{"bash", `{"command":"cat b"}`, "b", "", ""},
		}, `
read /w/a "x\ny\n"
edit /w/a "x\ny\n" -> "1\n2\n"
edit /w/a "1\n2\n" -> "1\n3\n"
read /w/a "1\n3\n"
write /w/b ? -> "b"
read /w/c ?
read /w/b "b"
`},
		{"opencode", []fileCall{
			{"write", `{"filePath":"/a","content":"x\ny\n"}`, "", `{"state":{"metadata":{"exists":false}}}`, ""},
			{"read", `{"filePath":"/a"}`, "<path>/a</path>\n<type>file</type>\n<content>\n1: x\n2: y\n\n(End of file - total 2 lines)\n</content>", "", ""},
			{"read", `{"filePath":"/a"}`, "<file>\n00001| x\n00002| z\n\n(End of file - total 2 lines)\n</file>", "", ""},
			{"edit", `{"filePath":"/a","oldString":"z","newString":"2"}`, "", `{"state":{"metadata":{"filediff":{"before":"x\nz\n","after":"x\n2\n"}}}}`, ""},
			{"bash", `{"command":"cat /a"}`, "x\n2\n", `{"state":{"metadata":{"output":"x\n2\n","exit":0}}}`, ""},
		}, `
write /a absent -> "x\ny\n"
read /a "x\ny\n"
read /a ? gap
edit /a "x\nz\n" -> "x\n2\n"
read /a "x\n2\n"
`},
		{"gemini", []fileCall{
			{"read_file", `{"absolute_path":"/a"}`, "x\n", "", ""},
			{"replace", `{"file_path":"/a","old_string":"X","new_string":"y"}`, "Successfully modified file", `{"resultDisplay":{"originalContent":"x\n","newContent":"y\n"}}`, ""},
			{"replace", `{"file_path":"/a","old_string":"y","new_string":"z"}`, "Successfully modified file", "", ""},
			{"write_file", `{"file_path":"/b","content":"b"}`, "Successfully created and wrote to new file: /b.", "", ""},
			{"read_file", `{"file_path":"/b","offset":3}`, "part", "", ""},
		}, `
read /a "x\n"
edit /a "x\n" -> "y\n"
edit /a "y\n" -> "z\n"
write /b absent -> "b"
read /b "b"
`},
		{"cline", []fileCall{
			{"write_to_file", `{"path":"a","content":"x"}`, "The content was saved.\n\n<final_file_content path=\"a\">\nx\n\n</final_file_content>\n", "", ""},
			{"replace_in_file", `{"path":"a","diff":"------- SEARCH\nx\n=======\ny\n+++++++ REPLACE\n"}`, "The content was saved.", "", ""},
			{"apply_diff", `{"path":"a","diff":"<<<<<<< SEARCH\ny\n=======\nz\n>>>>>>> REPLACE"}`, "ok", "", ""},
			{"execute_command", `{"command":"npm run build"}`, "", "", ""},
		}, `
write /w/a ? -> "x\n"
edit /w/a "x\n" -> "y\n"
edit /w/a "y\n" -> "z\n"
run
`},
		{"openhands", []fileCall{
			{"str_replace_editor", `{"command":"create","path":"/a","file_text":"x\ny\n"}`, "File created", "", ""},
			{"str_replace_editor", `{"command":"str_replace","path":"/a","old_str":"q","new_str":"z"}`, "ERROR:\nNo replacement was performed", "", ""},
			{"str_replace_editor", `{"command":"str_replace","path":"/a","old_str":"y","new_str":"z"}`, "The file /a has been edited.", "", ""},
			{"str_replace_editor", `{"command":"view","path":"/a"}`, "Here's the result of running `cat -n` on /a:\n     1\tx\n     2\tz\n", "", ""},
			{"execute_bash", `{"command":"echo 1 > /b"}`, "", "", ""},
		}, `
write /a ? -> "x\ny\n"
edit /a "x\ny\n" failed
edit /a "x\ny\n" -> "x\nz\n"
read /a "x\nz\n"
write /b ? -> "1\n"
`},
		{"swe-agent", []fileCall{
			{"create", `{"filename":"a.py"}`, "[File: a.py (1 lines total)]\r\n1:\n(Open file: /w/a.py)\n(Current directory: /w)\nbash-$", "", ""},
			{"insert", `{"text":"x\ny"}`, "[File: /w/a.py (3 lines total)]\r\n1:\r\n2:x\r\n3:y\n(Open file: /w/a.py)\n(Current directory: /w)\nbash-$", "", ""},
			{"insert", `{"text":"w","line":1}`, "Inserted.\n(Open file: /w/a.py)\n(Current directory: /w)\nbash-$", "", ""},
			{"edit", `{"search":"y","replace":"z"}`, "Your proposed edit has introduced new syntax error(s).\n[File: /w/a.py (1 lines total)]\n1:z\n(Open file: /w/a.py)\n", "", ""},
			{"edit", `{"search":"y","replace":"z"}`, "Text replaced.\n[File: /w/a.py (4 lines total)]\n(3 more lines above)\n4:z\n(Open file: /w/a.py)\n(Current directory: /w/sub)\nbash-$", "", ""},
			{"edit", `{"replacement_text":"1\n2","start_line":1,"end_line":2}`, "File updated.\n(Open file: /w/a.py)\n(Current directory: /w/sub)\nbash-$", "", ""},
			{"edit", `{"search":"z"}`, "Your edit was not applied (file not modified): Text 'z' not found\n(Open file: /w/a.py)\n", "", ""},
			{"open", `{"path":"b.py"}`, "[File: /w/sub/b.py (1 lines total)]\n1:b\n(Open file: /w/sub/b.py)\n", "", ""},
			{"scroll_down", `{}`, "[File: /w/sub/b.py (2 lines total)]\n(1 more lines above)\n2:c\n(Open file: /w/sub/b.py)\n", "", ""},
			{"scroll_down", `{}`, "", "", ""},
			{"edit", `{"search":"x","replace":"y"}`, "", "", ""},
			{"bash", `{"command":"rm b.py"}`, "(Open file: n/a)\n(Current directory: /w/sub)\nbash-$", "", ""},
		}, `
edit /w/a.py ? -> "\n"
edit /w/a.py "\n" -> "\nx\ny\n"
edit /w/a.py "\nx\ny\n" -> "\nw\nx\ny\n"
edit /w/a.py "\nw\nx\ny\n" failed
edit /w/a.py "\nw\nx\ny\n" -> "\nw\nx\nz\n"
edit /w/a.py "\nw\nx\nz\n" -> "1\n2\nx\nz\n"
edit /w/a.py "1\n2\nx\nz\n" failed
read /w/sub/b.py "b\n"
read /w/sub/b.py ? gap
run
delete /w/sub/b.py ? -> absent
`},
		// Agents that write text call the tools as commands.
		{"swe-agent", []fileCall{
			{"bash", `{"command":"create a.py\n"}`, "[File: /w/a.py (1 lines total)]\n<<<<< START CURSOR >>>>>\n1:\n<<<<< END CURSOR >>>>>\n(Open file: /w/a.py)\n", "", ""},
			{"bash", `{"command":"edit\nx\ny\nend_of_edit\n"}`, "[File: /w/a.py (2 lines total)]\n<<<<< START CURSOR >>>>>\n1:x\n<<<<< END CURSOR >>>>>\n2:y\n(Open file: /w/a.py)\n", "", ""},
			{"bash", `{"command":"edit 2:2\nend_of_edit"}`, "(Open file: /w/a.py)\n(Current directory: /w)\nbash-$", "", ""},
			{"bash", `{"command":"open \"a.py\" 1"}`, "[File: /w/a.py (2 lines total)]\n1:x\n2:\n(Open file: /w/a.py)\n", "", ""},
			{"bash", `{"command":"edit 1:1\nz\nend_of_edit"}`, "Your proposed edit has introduced new syntax error(s).\n(Open file: /w/a.py)\n", "", ""},
			{"bash", `{"command":"echo q > a.py"}`, "", "", ""},
			{"str_replace_editor", `{"command":"str_replace","path":"/w/a.py","old_str":"n","new_str":"m"}`, "OBSERVATION:\nNo replacement was performed, old_str did not appear", "", ""},
			{"str_replace_based_edit_tool", `{"command":"str_replace","path":"/w/a.py","old_str":"q","new_str":"m"}`, "The file /w/a.py has been edited.", "", ""},
		}, `
edit /w/a.py ? -> "\n"
edit /w/a.py "\n" -> "x\ny\n"
edit /w/a.py "x\ny\n" -> "x\n\n"
read /w/a.py "x\n\n"
edit /w/a.py "x\n\n" failed
write /w/a.py "x\n\n" -> "q\n"
edit /w/a.py "q\n" failed
edit /w/a.py "q\n" -> "m\n"
`},
		{"mini-swe-agent", []fileCall{{"bash", `{"command":"cat <<'EOF' > a.py\nx\nEOF"}`, "", "", ""}}, "\nwrite /w/a.py ? -> \"x\\n\"\n"},
		{"inspect", []fileCall{{"text_editor", `{"command":"create","path":"/a","file_text":"x"}`, "", "", ""}, {"bash", `{"cmd":"cat /a"}`, "x", "", ""}, {"python", `{"code":"1"}`, "", "", ""}},
			"\nwrite /a ? -> \"x\"\nread /a \"x\"\nrun\n"},
		// A session that was not imported has the tools of all formats.
		{"", []fileCall{{"Write", `{"file_path":"/a","content":"x"}`, "", "", ""}, {"apply_patch", `"*** Begin Patch\n*** Delete File: /a\n*** End Patch"`, "", "", ""}},
			"\nwrite /a ? -> \"x\"\ndelete /a \"x\" -> absent\n"},
		{"tau-bench", []fileCall{{"calculate", `{"expression":"1+1"}`, "2", "", ""}}, "\n"},
	} {
		if got := "\n" + filesOf(t, c.format, c.calls); got != c.want {
			t.Errorf("%s:%s\nwant:%s", c.format, got, c.want)
		}
	}
}

// filesOf describes what calls did to files, in lines.
func filesOf(t *testing.T, format string, calls []fileCall) string {
	t.Helper()
	log := eventlog.Open(memory.New())
	add := func(p event.Payload) {
		t.Helper()
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.New(p)); err != nil {
			t.Fatal(err)
		}
	}
	add(event.Session{CWD: "/w", Source: event.SessionSource{Format: format}})
	for i, c := range calls {
		id := fmt.Sprint("c", i)
		add(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, c.tool, jsontext.Value(c.arguments))}})
		r := event.ToolResult(id, c.tool)
		if c.result != "" {
			r.Content = []event.Part{event.Text(c.result)}
		}
		m := event.Message{Role: event.Tool}
		if c.extra != "" {
			r.Extra = jsontext.Value(c.extra)
		}
		if c.beside != "" {
			m.Extra = jsontext.Value(c.beside)
		}
		m.Parts = []event.Part{r}
		add(m)
	}
	var b strings.Builder
	for c, err := range files.Of(t.Context(), log, "s", eventlog.All(), formats.FileTools) {
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(describeChange(&c) + "\n")
	}
	return b.String()
}

func describeChange(c *files.Change) string {
	if c.Does == files.Run {
		return string(c.Does)
	}
	state := func(s files.State) string {
		switch {
		case s.Absent:
			return "absent"
		case s.Known:
			return fmt.Sprintf("%q", s.Text)
		}
		return "?"
	}
	text := fmt.Sprintf("%s %s %s", c.Does, c.Path, state(c.Before))
	if c.After != c.Before {
		text += " -> " + state(c.After)
	}
	if c.Failed {
		text += " failed"
	}
	if c.Gap != nil {
		text += " gap"
	}
	return text
}

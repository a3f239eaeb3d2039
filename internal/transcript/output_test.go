package transcript_test

import (
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/internal/transcript"
)

func TestErrorTextHasNoHeader(t *testing.T) {
	const header = "Chunk ID: 8562ef\nWall time: 5.1 seconds\nProcess exited with code 1\nOriginal token count: 4\nOutput:\n"
	for _, c := range []struct{ text, want string }{
		{header + "no such file\n", "no such file\n"},
		{"Command: /bin/zsh -lc 'cat x'\n" + header + "no such file\n", "no such file\n"},
		{header, "Process exited with code 1"},
		{header + "Output:\nx", "Output:\nx"},
		{"Exit code: 2\nWall time: 0 seconds\nOutput:\n\n", "Exit code: 2"},
		{`{"output":"no such file","metadata":{"exit_code":1}}`, "no such file"},
		{"Script completed\nWall time 0.1 seconds\nOutput:\n\n{\"chunk_id\":\"1\",\"output\":\"no such file\",\"exit_code\":1}", "no such file"},
		// Texts that only look like it stay whole.
		{"Output:\nx", "Output:\nx"},
		{"Chunk ID: 1", "Chunk ID: 1"},
		{`{"output":1}`, `{"output":1}`},
		{`{"error":"x"}`, `{"error":"x"}`},
		{"make: Exit code: 2\nOutput:\nx", "make: Exit code: 2\nOutput:\nx"},
		{"", ""},
	} {
		p := event.ToolResult("c", "t", event.Text(c.text))
		if got := transcript.ErrorText(&p); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

package web_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/step"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/web"
)

// A message of a compaction has no event: the page shows all of it, without a number.
func TestAtACompaction(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	long := strings.Repeat("a line of the summary\n", 3000)
	s.addEach("s", event.UserMessage("old"), event.AssistantMessage("older"), event.New(event.Compaction{Covers: event.Stretch{From: 1, To: 2}, Summary: long + "the end"}))
	body := s.page("/s/s/at/3")
	if !strings.Contains(body, "the end") || strings.Contains(body, "show all") {
		t.Error("the page does not have all of the summary")
	}
	for _, bad := range []string{"#0", `"e0"`, "/e/0"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s is on the page", bad)
		}
	}
}

// At each event, the page has the history, the states and the changes of the library.
func TestAt(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	s.addEach("s", event.New(event.Session{CWD: "/w", Source: event.SessionSource{Format: "claude"}}), event.UserMessage(hostileText), event.AssistantMessage("first answer"))
	s.write("s", 1, "/w/a.txt", "text of a\n")
	if _, err := fork.Rewind(t.Context(), s.log, "s", fork.AtSeq(3)); err != nil {
		t.Fatal(err)
	}
	s.addEach("s", event.UserMessage("second question"), event.New(event.CustomPatch{Name: "plan", Patch: []byte(`[{"op":"add","path":"/x","value":1}]`)}),
		event.New(event.Child{State: event.ChildStarted, ChildID: "c"}), event.New(event.Child{State: event.ChildCompleted, ChildID: "c"}))
	var r step.Replayer
	for x, err := range projection.Steps(t.Context(), s.log, "s", projection.Session(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		seq := x.Event.Seq
		body := s.page(fmt.Sprintf("/s/s/at/%d?state=usage", seq))
		if seq > 1 {
			checkHostile(t, body)
		}
		row := r.Step(&x)
		got, loaded, err := step.At(t.Context(), s.log, "s", seq)
		if err != nil || fmt.Sprint(got.Changes) != fmt.Sprint(row.Changes) || fmt.Sprint(got.Patch) != fmt.Sprint(row.Patch) {
			t.Errorf("event %d: At has the changes %v and %v, Steps %v and %v (%v)", seq, got.Changes, got.Patch, row.Changes, row.Patch, err)
		}
		for i := range row.Values {
			v := &row.Values[i]
			want := fmt.Sprintf(`<th scope="row">%s</th>`, v.Name)
			if strings.Contains(body, want) != v.Changed() {
				t.Errorf("event %d: the change of %s is on the page: %v, want %v", seq, v.Name, !v.Changed(), v.Changed())
			}
		}
		for e, err := range projection.Entries(t.Context(), s.log, "s", projection.RenderOptions{}, projection.Options{At: seq}) {
			if err != nil {
				t.Fatal(err)
			}
			if text := e.Message.Text(); text != hostileText && !strings.Contains(body, html.EscapeString(text)) {
				t.Errorf("event %d: the history on the page lacks %q", seq, text)
			}
		}
		full, err := projection.Load(t.Context(), s.log, "s", projection.History(), projection.Options{At: seq})
		if m := regexp.MustCompile(`model saw: (\d+) message`).FindStringSubmatch(body); err != nil || m == nil || m[1] != fmt.Sprint(full.State.Len()) {
			t.Errorf("event %d: the page counts %v messages, want %d (%v)", seq, m, full.State.Len(), err)
		}
		state, err := projection.StateJSON(loaded, "usage")
		if err == nil {
			state, err = rawjson.Indent(state)
		}
		if err != nil || !strings.Contains(plainText(body), strings.TrimSpace(string(state))) {
			t.Errorf("event %d: the page lacks the state %s (%v)", seq, state, err)
		}
	}
	if body := s.page("/s/s/at/5?file=%2Fw%2Fa.txt"); !strings.Contains(body, "text of a") {
		t.Error("the page lacks the text of a file")
	}
	if body := s.page("/s/s/at/3"); strings.Contains(body, "a.txt") {
		t.Error("the page has a file of a later event")
	}
	if body := s.page("/s/s/at?seq=3"); !strings.Contains(body, `max="10" value="3"`) || !strings.Contains(body, `href="/s/s/at/4" rel="next"`) {
		t.Error("the slider leads nowhere")
	}
}

// plainText is the text of a page.
func plainText(body string) string {
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(body, ""))
}

// A long history comes in parts, the newest first, and each message once.
func TestLongHistory(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	const messages = 330
	var all []event.Event
	for i := range messages {
		all = append(all, event.UserMessage(fmt.Sprintf("message %03d.", i)))
	}
	s.add("s", all...)
	seen := map[string]int{}
	path := "/s/s/at"
	for path != "" {
		body := s.page(path)
		for _, m := range regexp.MustCompile(`<p>message (\d+)\.`).FindAllStringSubmatch(body, -1) {
			seen[m[1]]++
		}
		path = ""
		if m := regexp.MustCompile(`<a href="([^"#]*)#history">earlier`).FindStringSubmatch(body); m != nil {
			path = m[1]
		}
	}
	if len(seen) != messages {
		t.Errorf("the parts have %d messages, want %d", len(seen), messages)
	}
	for text, n := range seen {
		if n != 1 {
			t.Errorf("message %s is %d times in the parts", text, n)
		}
	}
}

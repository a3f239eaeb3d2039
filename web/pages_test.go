package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage/htmltest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/web"
)

// The page of costs keeps the sums of the sessions in the store: the next request reads no session.
func TestStatsKeepsSums(t *testing.T) {
	s, folder := newFolderSite(t, web.Options{})
	s.add("s", event.UserMessage("hello"), event.AssistantMessage("hi"))
	body := s.page("/stats")
	rows, err := jsonl.New(folder).CatalogRows(t.Context(), []string{"s"})
	if err != nil || len(rows["s"]) == 0 {
		t.Fatalf("%d rows in the store (%v)", len(rows), err)
	}
	if again := s.page("/stats"); again != body {
		t.Errorf("the page is another one the second time:\n%s\n%s", body, again)
	}
}

// hostile are texts that try to be more than text.
var hostile = []string{
	"<script>alert(1)</script>", "\"' onload=alert(1) x=", "</pre></details><img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "![x](http://evil.example/x.png)",
	"<svg/onload=alert(1)>", "\u202egnp.exe\u2066", "\x00\x1b[31m\r\n\x80", "```\"><script>\n</script>\n```", "{{.Token}}", "http://x/\"onclick=alert(1)", "<a href='data:text/html,x'>y</a>",
	"[x]: javascript:alert(1)\n\n[x]", "<javascript:alert(1)>", "|a|\n|-|\n|<b>|", strings.Repeat("long ", 3000), "~~~html\n<b onclick=x>\n~~~", "&lt;script&gt;", "# <h1>\n\n* <li>\n\n> <q>",
	"<!-- x -->\n<div\nonclick=x>", "- [x] <input>", "$(reboot)\n%0d%0aSet-Cookie: x",
}

// hostile appends a session in which a text is everywhere.
func (s *site) hostile(id, text string) {
	s.t.Helper()
	text = strings.ToValidUTF8(text, "\ufffd")
	arguments, err := json.Marshal(map[string]string{"command": text, "file_path": text, text: text})
	if err != nil {
		s.t.Fatal(err)
	}
	failed := event.ToolResult("c", "n"+text, event.Text(text), event.Part{Type: event.DocumentPart, Name: text, MediaType: "text/html", Data: []byte(text + "x")})
	failed.IsError = true
	s.add(id, event.New(event.Session{Title: text, Agent: text, CWD: text, Source: event.SessionSource{Format: "claude", Path: text}}),
		event.UserMessage(text),
		event.New(event.Message{Role: event.Assistant, Model: text, StopReason: text, Parts: []event.Part{event.Reasoning(text, ""), event.Text(text),
			event.ToolCall("c", "n"+text, arguments), event.ToolCall("d", "Edit", arguments), event.Opaque("k"+text, []byte(`{}`))}}),
		event.New(event.Message{Role: event.Tool, Parts: []event.Part{failed}}),
		event.New(event.Message{Role: event.User, Parts: []event.Part{{Type: event.ImagePart, URL: "http://x/" + text}, {Type: event.ImagePart, URL: "javascript:" + text},
			{Type: event.ImagePart, MediaType: "image/svg+xml", Data: []byte("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")}}}),
		event.New(event.Child{State: event.ChildStarted, ChildID: "x", CallID: "d", ChildSessionID: "child" + id, Agent: text, Task: text}),
		event.New(event.Compaction{Summary: text, Strategy: text}), event.New(event.Handoff{ToAgent: "n" + text, Reason: text}))
}

// Text of a session is text on every page, and stays at its place.
func TestHostileSession(t *testing.T) {
	s := newSite(t, web.Options{})
	for i, text := range hostile {
		s.hostile(fmt.Sprint("h", i), text)
	}
	paths := []string{"/", "/?sort=cost", "/search?q=script", "/search?q=%3Cscript%3E%22", "/stats", "/?q=%22%3E%3Cscript%3E&cwd=%27&model=%3C"}
	for i := range hostile {
		for _, below := range []string{"", "/tree", "/files", "/verify?check=now", "/at/6?state=history", "/timeline"} {
			paths = append(paths, fmt.Sprint("/s/h", i, below))
		}
		paths = append(paths, fmt.Sprintf("/diff?a=h%d@3&b=h%d", i, i))
		for seq := range 8 {
			paths = append(paths, fmt.Sprintf("/s/h%d/e/%d", i, seq+1))
		}
	}
	for _, path := range paths {
		if err := htmltest.Check(s.page(path)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A body is an image only if its bytes are of a raster image. Any other body is a file to save.
func TestBodies(t *testing.T) {
	s := newSite(t, web.Options{})
	for body, want := range map[string]string{
		"\x89PNG\r\n\x1a\n0000": "image/png", "GIF89a00": "image/gif", "<svg xmlns='http://www.w3.org/2000/svg'/>": "application/octet-stream",
		"<html><script>alert(1)</script>": "application/octet-stream", "": "application/octet-stream", "%PDF-1.4": "application/octet-stream",
	} {
		ref, err := s.log.PutBlob(t.Context(), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(s.request("GET", "/s/s/body/"+string(ref.Blob), "Authorization", "Bearer "+s.token))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		attached := answer.Header.Get("Content-Disposition") == "attachment"
		if got := answer.Header.Get("Content-Type"); got != want || attached != (want == "application/octet-stream") {
			t.Errorf("%q: %s, attached %v", body, got, attached)
		}
	}
}

// A stream that is cut after each few events gives each event once, in order.
func TestStreamIsCut(t *testing.T) {
	s := newSite(t, web.Options{})
	const events = 300
	s.add("s", event.UserMessage("first"))
	done := make(chan error, 1)
	go func() {
		for i := range events - 1 {
			if _, err := s.log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(fmt.Sprint("message ", i))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	var got []string
	for cut := 1; len(got) < events; cut++ {
		headers := []string{"Authorization", "Bearer " + s.token}
		if len(got) > 0 {
			headers = append(headers, "Last-Event-ID", got[len(got)-1])
		}
		got = append(got, s.frames("/s/s/stream", 1+cut%5, headers)...)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, seq := range got {
		if seq != fmt.Sprint(i+1) {
			t.Fatalf("frame %d has the seq %s", i+1, seq)
		}
	}
}

// frames reads the ids of some frames of a stream, and cuts it.
func (s *site) frames(path string, n int, headers []string) (ids []string) {
	s.t.Helper()
	answer, err := http.DefaultClient.Do(s.request("GET", path, headers...))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); len(ids) < n && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Clients that read nothing keep no other client waiting.
func TestSlowClients(t *testing.T) {
	s := newSite(t, web.Options{})
	s.add("s", event.UserMessage(strings.Repeat("many words ", 2000)))
	for range 100 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /s/s/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.token); err != nil {
			t.Fatal(err)
		}
	}
	if body := s.page("/s/s"); !strings.Contains(body, "many words") {
		t.Error("the page is not there")
	}
}

// A session of several parts shows each event in one of them.
func TestParts(t *testing.T) {
	s := newSite(t, web.Options{})
	const events = 700
	var all []event.Event
	for i := range events {
		all = append(all, event.UserMessage(fmt.Sprintf("word-%d.", i)))
	}
	s.add("s", all...)
	shown := map[string]int{}
	for path, n := "/s/s", 0; path != ""; n++ {
		body := s.page(path)
		if n > events/100 {
			t.Fatal("the parts do not end")
		}
		for i := range events {
			if word := fmt.Sprintf("word-%d.", i); strings.Contains(body, "<p>"+word+"</p>") {
				shown[word]++
			}
		}
		path = ""
		if at := strings.Index(body, `" rel="next" id="later"`); at > 0 {
			path = body[strings.LastIndex(body[:at], `"`)+1 : at]
		}
	}
	for i := range events {
		if n := shown[fmt.Sprintf("word-%d.", i)]; n != 1 {
			t.Fatalf("event %d is shown %d times", i+1, n)
		}
	}
}

// The address of a page may have the beginning of an id.
func TestBeginningsOfIDs(t *testing.T) {
	s := newSite(t, web.Options{})
	for _, id := range []string{"3f0c-one", "3f0c-one.agent-1", "77a b/c", "77ax"} {
		s.add(id, event.UserMessage("words of "+id))
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]string{
		"/s/3f0c":                   "/s/3f0c-one",
		"/s/3f0c.agent":             "/s/3f0c-one.agent-1",
		"/s/77a%20/e/1":             "/s/77a%20b%2Fc/e/1",
		"/s/77ax/at?x=1":            "",
		"/s/77a%20/files?path=%2Fa": "/s/77a%20b%2Fc/files?path=%2Fa",
		"/diff?a=3f0c&b=77ax":       "/diff?a=3f0c-one&b=77ax",
		"/s/3f0c/tree":              "/s/3f0c-one/tree",
	} {
		r := s.request("GET", path, "Authorization", "Bearer "+s.token, "Accept", "text/html")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Location"); got != want || (answer.StatusCode == http.StatusFound) != (want != "") {
			t.Errorf("%s leads to %q with %s, want %q", path, got, answer.Status, want)
		}
	}
	for path, want := range map[string]string{"/s/77a": "give more of the id", "/s/99": "not found", "/s/3f0c-one/e/9": "", "/diff?a=99&b=77ax": "not found"} {
		if status, body := s.send(s.request("GET", path, "Accept", "text/html")); status != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

// The costs of a week are the costs of its days, from Monday on.
func TestWeeks(t *testing.T) {
	s := newSite(t, web.Options{})
	for _, day := range []string{"2026-03-01", "2026-03-02", "2026-03-08", "2026-03-09"} {
		e := event.New(event.Message{Role: event.Assistant, Model: "m", Usage: event.Usage{OutputTokens: 1000}, Parts: []event.Part{event.Text("x")}})
		at, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		e.Timestamp = at
		s.add("s-"+day, e)
	}
	_, body, _ := strings.Cut(s.page("/stats"), "By week")
	body, _, _ = strings.Cut(body, "</section>")
	var rows []string
	for _, row := range regexp.MustCompile(`<tr><td>([^<]*)</td><td class="num">[^<]*</td><td class="num">[^<]*</td><td class="num">([^<]*)</td>`).FindAllStringSubmatch(body, -1) {
		rows = append(rows, row[1]+" "+row[2])
	}
	if got := strings.Join(rows, ", "); got != "2026-03-09 1,000, 2026-03-02 2,000, 2026-02-23 1,000" {
		t.Errorf("weeks: %s\n%s", got, body)
	}
}

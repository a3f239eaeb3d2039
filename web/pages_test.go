package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

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

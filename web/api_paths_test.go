package web_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/web"
)

// head is a head in an answer.
type head struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
	Hash    string `json:"hash"`
}

func (h head) tag() string { return fmt.Sprintf(`"%d:%s"`, h.Seq, h.Hash) }

// rowsOf are all rows of a list that is read in parts, by next.
func (s *site) rowsOf(path, rows, cursor string) (all []jsontext.Value) {
	s.t.Helper()
	for at := path; ; {
		var part map[string]jsontext.Value
		s.get(at).value(s.t, &part)
		all = append(all, decoded[[]jsontext.Value](s.t, part[rows])...)
		next := strings.Trim(string(part["next"]), `"`)
		if next == "" {
			return all
		}
		if len(all) > 1000 {
			s.t.Fatalf("%s does not end", path)
		}
		joint := "?"
		if strings.Contains(path, "?") {
			joint = "&"
		}
		at = path + joint + cursor + "=" + url.QueryEscape(next)
	}
}

// live reads frames of a stream of the API until there are n.
func (s *site) live(path string, n int, headers ...string) (ids, data []string) {
	s.t.Helper()
	r := s.request("GET", "/api/v1"+path, append(headers, "Authorization", "Bearer "+s.token)...)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := document().CheckRequest("GET", path, r.Header, nil); err != nil {
		s.t.Error(err)
	}
	if err := document().CheckAnswer("GET", path, answer.StatusCode, answer.Header, []byte("x")); err != nil {
		s.t.Error(err)
	}
	lines := bufio.NewScanner(answer.Body)
	for len(data) < n && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		}
	}
	if len(data) < n {
		s.t.Fatalf("%s ends after %d frames: %v", path, len(data), lines.Err())
	}
	return ids, data
}

// toolSession is a session of a tool that changes a file.
func toolSession() []event.Event {
	return []event.Event{
		event.New(event.Session{CWD: "/work", Source: event.SessionSource{Format: "claude"}, Title: "Fix it"}),
		event.UserMessage("fix the file"),
		event.New(event.Message{Role: event.Assistant, Model: "claude-sonnet-4-5", Usage: event.Usage{InputTokens: 10, OutputTokens: 5},
			Parts: []event.Part{event.ToolCall("c1", "Write", jsontext.Value(`{"file_path":"/work/a.go","content":"package a\n"}`))}}),
		event.ToolOutput("c1", "Write", []byte("ok"), false),
		event.AssistantMessage("done"),
	}
}

// Every path, parameter and answer of openapi.json is used, and each request and answer is as it says.
func TestAPI(t *testing.T) {
	dir := t.TempDir()
	s := siteOver(t, eventlog.Open(jsonl.New(dir)), web.Options{Write: true})
	readOnly := siteOver(t, eventlog.Open(jsonl.New(dir, jsonl.Options{ReadOnly: true})), web.Options{})
	for _, e := range toolSession() {
		s.add("tool", e)
	}
	for i := range 7 {
		s.add(fmt.Sprintf("s%d", i), event.UserMessage(fmt.Sprintf("words of %d", i)))
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T, *site)
	}{{"lists", apiLists}, {"session", apiSession}, {"views", apiViews}, {"append", apiAppend}, {"fork", apiFork}, {"live", apiLive}, {"problems", apiProblems}} {
		t.Run(part.name, func(t *testing.T) { part.run(t, s) })
	}
	t.Run("read-only", func(t *testing.T) {
		for _, path := range []string{"events", "fork", "rewind"} {
			readOnly.refuses(http.StatusForbidden, "changes nothing", "POST", "/sessions/tool/"+path, `{"events":[],"to":1}`)
		}
		readOnly.get("/sessions/tool")
	})
	t.Run("a damaged session", func(t *testing.T) { apiDamage(t, s, dir) })
	for _, what := range document().Unseen() {
		t.Errorf("no test has %s", what)
	}
}

func apiLists(t *testing.T, s *site) {
	if x := s.get("/openapi"); !strings.Contains(string(x.body), `"openapi": "3.1.0"`) {
		t.Errorf("%s", x.body)
	}
	s.refuses(http.StatusBadRequest, `no parameter "x"`, "GET", "/openapi?x=1", "")
	for path, most := range map[string]int{"/sessions": 1000, "/sessions?sort=activity": 1000, "/sessions?sort=events": 1000, "/sessions?sort=cost": 1000, "/sessions?sort=id&q=words": 7,
		"/sessions?since=1h&until=today&all=1": 1000, "/sessions?source=claude&cwd=/work&model=sonnet": 1} {
		whole := s.rowsOf(path, "sessions", "cursor")
		joint := "?"
		if strings.Contains(path, "?") {
			joint = "&"
		}
		parts := s.rowsOf(path+joint+"limit=3", "sessions", "cursor")
		if len(whole) == 0 || len(whole) > most || fmt.Sprint(whole) != fmt.Sprint(parts) {
			t.Errorf("%s: %d sessions, in parts\n%s\nwant\n%s", path, len(whole), parts, whole)
		}
	}
	// A session that grows between two parts is not listed again.
	var part struct {
		Sessions []head `json:"sessions"`
		Next     string `json:"next"`
	}
	s.get("/sessions?q=words&limit=2").value(t, &part)
	s.add(part.Sessions[0].Session, event.UserMessage("more"))
	for _, row := range s.rowsOf("/sessions?q=words&cursor="+part.Next, "sessions", "cursor") {
		if decoded[head](t, row).Session == part.Sessions[0].Session {
			t.Errorf("%s is listed twice", part.Sessions[0].Session)
		}
	}
	if hits := s.rowsOf("/search?q=words&limit=2", "hits", "cursor"); len(hits) != 7 {
		t.Errorf("%d hits", len(hits))
	}
	if hits := s.rowsOf("/search?q=words+of&session=s1", "hits", "cursor"); len(hits) != 1 {
		t.Errorf("%d hits", len(hits))
	}
	var sum struct {
		Total struct {
			Calls int `json:"calls"`
		} `json:"total"`
	}
	s.get("/stats?source=claude&cwd=/work&model=sonnet&since=1h&until=today&all=1").value(t, &sum)
	if sum.Total.Calls != 1 {
		t.Errorf("%d calls", sum.Total.Calls)
	}
}

func apiSession(t *testing.T, s *site) {
	var h head
	x := s.get("/sessions/tool")
	x.value(t, &h)
	if h.Seq != 5 || x.header.Get("ETag") != h.tag() {
		t.Errorf("the ETag of %+v is %s", h, x.header.Get("ETag"))
	}
	all := s.rowsOf("/sessions/tool/events", "events", "after")
	parts := s.rowsOf("/sessions/tool/events?limit=2&path=all", "events", "after")
	if len(all) != 5 || fmt.Sprint(all) != fmt.Sprint(parts) {
		t.Errorf("%d events, in parts\n%s", len(all), parts)
	}
	for _, below := range []string{"", "/events", "/events?after=9&limit=1&path=active", "/history", "/state", "/files"} {
		if x := s.call("GET", "/sessions/tool"+below, "", "If-None-Match", `"x", `+h.tag()); x.status != http.StatusNotModified || len(x.body) > 0 || x.header.Get("ETag") != h.tag() {
			t.Errorf("%s: %d %s", below, x.status, x.body)
		}
		if x := s.call("GET", "/sessions/tool"+below, "", "If-None-Match", `"4:`+h.Hash+`"`); x.status != http.StatusOK {
			t.Errorf("%s: %d %s", below, x.status, x.body)
		}
		s.refuses(http.StatusNotFound, "not found", "GET", "/sessions/none"+below, "")
	}
}

func apiViews(t *testing.T, s *site) {
	if messages := s.rowsOf("/sessions/tool/history?limit=1", "messages", "cursor"); len(messages) != 4 {
		t.Errorf("%d messages", len(messages))
	}
	if messages := s.rowsOf("/sessions/tool/history?at=2", "messages", "cursor"); len(messages) != 1 {
		t.Errorf("%d messages", len(messages))
	}
	for path, want := range map[string]string{
		"/sessions/tool/state":                    `"history":`,
		"/sessions/tool/state?projection=history": `fix the file`,
		"/sessions/tool/state?at=1":               `"info":`,
		"/sessions/tool/tree":                     `"session":"tool"`,
		"/sessions/tool/cost":                     `"output_tokens":5`,
		"/sessions/tool/files":                    `"path":"/work/a.go"`,
		"/sessions/tool/files?at=2":               `"files":[]`,
		"/sessions/tool/verify":                   `"defects":[]`,
	} {
		if x := s.get(path); !strings.Contains(string(x.body), want) {
			t.Errorf("%s: %s", path, x.body)
		}
	}
	ref, err := s.log.PutBlob(t.Context(), strings.NewReader("bytes of a blob"))
	if err != nil {
		t.Fatal(err)
	}
	if x := s.get("/blobs/" + string(ref.Blob)); string(x.body) != "bytes of a blob" {
		t.Errorf("%s", x.body)
	}
	s.refuses(http.StatusNotFound, "blob", "GET", "/blobs/sha256:"+strings.Repeat("0", 64), "")
}

func apiFork(t *testing.T, s *site) {
	var f struct {
		head
		Parent string `json:"parent"`
		At     int64  `json:"at"`
	}
	var of head
	s.get("/sessions/tool").value(t, &of)
	x := s.call("POST", "/sessions/tool/fork", `{"at":2,"as":"tool-2","label":"other","reason":"to try"}`)
	x.value(t, &f)
	if x.status != http.StatusOK || f.Session != "tool-2" || f.Parent != "tool" || f.At != 2 || x.header.Get("ETag") != f.tag() {
		t.Errorf("%d %s", x.status, x.body)
	}
	s.call("POST", "/sessions/tool/fork", `{"turn":0,"before":true}`).value(t, &f)
	s.call("POST", "/sessions/tool/fork", `{}`).value(t, &f)
	if f.At != of.Seq {
		t.Errorf("a fork at the head is at %d", f.At)
	}
	s.refuses(http.StatusConflict, "exists", "POST", "/sessions/tool/fork", `{"as":"tool-2"}`)
	s.refuses(http.StatusUnprocessableEntity, "past the head", "POST", "/sessions/tool/fork", `{"at":99}`)
	s.refuses(http.StatusNotFound, "not found", "POST", "/sessions/none/fork", `{}`)
	s.refuses(http.StatusBadRequest, "more than one", "POST", "/sessions/tool/fork", `{"at":1,"turn":0}`)
	s.add("tool-2", event.UserMessage("another way"))
	if events := s.rowsOf("/diff?a=tool&b=tool-2&limit=2", "events", "cursor"); len(events) != 5 {
		t.Errorf("%d events: %s", len(events), events)
	}
	if x := s.get("/diff?a=tool@3&b=tool-2"); !strings.Contains(string(x.body), `"ancestor":{"session":"tool","seq":2}`) {
		t.Errorf("%s", x.body)
	}
	s.refuses(http.StatusConflict, "not related", "GET", "/diff?a=tool&b=s0", "")
	s.refuses(http.StatusNotFound, "not found", "GET", "/diff?a=tool&b=none", "")
	s.refuses(http.StatusBadRequest, "b is missing", "GET", "/diff?a=tool", "")

	var m struct {
		head
		From int64 `json:"from"`
		To   int64 `json:"to"`
	}
	s.refuses(http.StatusPreconditionFailed, "expected head", "POST", "/sessions/tool/rewind", `{"to":2}`, "If-Match", `"4"`)
	x = s.call("POST", "/sessions/tool/rewind", `{"to":2,"label":"dead end"}`, "If-Match", of.tag())
	x.value(t, &m)
	if x.status != http.StatusOK || m.From != of.Seq || m.To != 2 || x.header.Get("ETag") != m.tag() {
		t.Errorf("%d %s", x.status, x.body)
	}
	orphaned := 0
	for _, e := range s.rowsOf("/sessions/tool/events", "events", "after") {
		if strings.Contains(string(e), `"orphaned":true`) {
			orphaned++
		}
	}
	if active := s.rowsOf("/sessions/tool/events?path=active", "events", "after"); orphaned != 3 || int64(len(active)) != m.Seq-3 {
		t.Errorf("%d orphaned, %d active of %d", orphaned, len(active), m.Seq)
	}
	s.refuses(http.StatusConflict, "there already", "POST", "/sessions/tool/rewind", `{"to":2}`)
	s.refuses(http.StatusUnsupportedMediaType, "JSON", "POST", "/sessions/tool/rewind", `{"to":2}`, "Content-Type", "text/plain")
	s.refuses(http.StatusBadRequest, "no place", "POST", "/sessions/tool/rewind", `{}`)
	s.refuses(http.StatusNotFound, "not found", "POST", "/sessions/none/rewind", `{"to":1}`)
}

func apiLive(t *testing.T, s *site) {
	s.add("grows", event.UserMessage("1"), event.UserMessage("2"))
	ids, data := s.live("/sessions/grows/live", 2)
	if fmt.Sprint(ids) != "[1 2]" || document().CheckSchema("Event", []byte(data[1])) != nil {
		t.Errorf("%s %s", ids, data)
	}
	added := make(chan error, 1)
	go func() {
		_, err := s.log.Append(t.Context(), "grows", eventlog.Any(), event.UserMessage("3"))
		added <- err
	}()
	if ids, _ := s.live("/sessions/grows/live?after=1", 2); fmt.Sprint(ids) != "[2 3]" {
		t.Errorf("%s", ids)
	}
	if err := <-added; err != nil {
		t.Fatal(err)
	}
	if ids, _ := s.live("/sessions/grows/live?after=1", 1, "Last-Event-ID", "2"); fmt.Sprint(ids) != "[3]" {
		t.Errorf("%s", ids)
	}
	s.refuses(http.StatusNotFound, "not found", "GET", "/sessions/none/live", "")
	s.refuses(http.StatusBadRequest, "after the newest event", "GET", "/sessions/grows/live?after=9", "")

	var all struct {
		Sessions []head `json:"sessions"`
	}
	s.get("/sessions?all=1").value(t, &all)
	ids, data = s.live("/live", len(all.Sessions))
	for _, text := range data {
		if err := document().CheckSchema("LiveHead", []byte(text)); err != nil {
			t.Error(err)
		}
	}
	s.add("grows", event.UserMessage("4"))
	_, data = s.live("/live", 1, "Last-Event-ID", ids[len(ids)-1])
	if h := decoded[head](t, jsontext.Value(data[0])); h.Session != "grows" || h.Seq != 4 {
		t.Errorf("%s", data)
	}
	if _, data = s.live("/live", len(all.Sessions), "Last-Event-ID", "of-another-start-7"); len(data) != len(all.Sessions) {
		t.Errorf("%s", data)
	}
	s.refuses(http.StatusBadRequest, "no parameter", "GET", "/live?x=1", "")
	s.refuses(http.StatusBadRequest, "after is now", "GET", "/live?after=1", "")
	go func() {
		time.Sleep(50 * time.Millisecond) // most streams are open by now
		s.add("grows", event.UserMessage("5"))
	}()
	_, data = s.live("/live?after=now", 1)
	if h := decoded[head](t, jsontext.Value(data[0])); h.Session != "grows" || h.Seq != 5 {
		t.Errorf("%s", data)
	}
}

// apiProblems sends a wrong request to each path.
func apiProblems(t *testing.T, s *site) {
	for path, words := range map[string]string{
		"/sessions?limit=0": "limit is 1 to 1000", "/sessions?sort=x": "sort is one of", "/sessions?since=x": "since is", "/sessions?q=a&q=b": "given twice", "/sessions?cursor=x": "not of this query",
		"/sessions?q=%zz": "cannot be read", "/sessions/tool?x=1": "no parameter", "/sessions/tool/events?after=-1": "after is", "/sessions/tool/events?path=x": "path is", "/sessions/tool/live?after=x": "after is",
		"/sessions/tool/history?at=0": "at is", "/sessions/tool/history?cursor=x": "not of this query", "/sessions/tool/state?projection=x": "no projection", "/sessions/tool/state?at=x": "at is", "/sessions/tool/files?at=x": "at is",
		"/search?q=": "q has", "/search": "q has", "/search?q=x&limit=x": "limit", "/stats?until=x": "until is", "/blobs/x": "digest", "/diff?a=tool&b=s0&cursor=x": "not of this query",
	} {
		s.refuses(http.StatusBadRequest, words, "GET", path, "")
	}
	for path, words := range map[string]string{"/sessions/tool/history?at=99": "99", "/sessions/none/tree": "not found", "/sessions/none/cost": "not found", "/sessions/none/verify": "not found"} {
		s.refuses(http.StatusNotFound, words, "GET", path, "")
	}
	// A cursor continues its own query only.
	var part struct {
		Next string `json:"next"`
	}
	s.get("/sessions?q=words&limit=2").value(t, &part)
	s.refuses(http.StatusBadRequest, "not of this query", "GET", "/sessions?limit=2&cursor="+part.Next, "")
	s.refuses(http.StatusBadRequest, "not of this query", "GET", "/search?q=words&cursor="+part.Next, "")
	for _, token := range []string{"Basic x", "Bearer ", "Bearer wrong"} {
		s.refuses(http.StatusUnauthorized, "token", "GET", "/sessions", "", "Authorization", token)
		s.refuses(http.StatusUnauthorized, "token", "POST", "/sessions/tool/events", says("x"), "Authorization", token)
	}
	for method, status := range map[string]int{"DELETE": http.StatusMethodNotAllowed, "PUT": http.StatusMethodNotAllowed} {
		r := s.request(method, "/api/v1/sessions/tool")
		if got, body := s.send(r); got != status || !strings.Contains(body, `"remedy":`) {
			t.Errorf("%s: %d %s", method, got, body)
		}
	}
	if status, body := s.send(s.request("GET", "/api/v1/nothing", "Accept", "text/html")); status != http.StatusNotFound || !strings.Contains(body, "no such path") {
		t.Errorf("%d %s", status, body)
	}
	// A browser has the cookie: it reads and does not write.
	cookie := s.cookie()
	if status, _ := s.send(s.request("GET", "/api/v1/sessions", "Cookie", cookie)); status != http.StatusOK {
		t.Error(status)
	}
	if status, body := s.send(s.request("POST", "/api/v1/sessions/tool/fork", "Cookie", cookie, "Origin", s.url, "Sec-Fetch-Site", "same-origin")); status != http.StatusForbidden {
		t.Errorf("%d %s", status, body)
	}
	if status, body := s.send(s.request("POST", "/s/tool")); status != http.StatusForbidden {
		t.Errorf("%d %s", status, body)
	}
}

// apiDamage reads a session whose last event is damaged.
func apiDamage(t *testing.T, s *site, dir string) {
	for range 5 {
		s.add("damaged", event.UserMessage("a text"))
	}
	path := filepath.Join(dir, "damaged.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(text), "\n") + 10 + strings.Index(string(text)[strings.Index(string(text), "\n"):], "a text")
	text[at] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	other := siteOver(t, eventlog.Open(jsonl.New(dir)), web.Options{})
	var part struct {
		Events []jsontext.Value `json:"events"`
		Next   int64            `json:"next"`
	}
	other.get("/sessions/damaged/events").value(t, &part)
	if len(part.Events) != 1 || part.Next != 1 {
		t.Errorf("%d events, next %d", len(part.Events), part.Next)
	}
	other.refuses(http.StatusInternalServerError, "damaged.jsonl", "GET", "/sessions/damaged/events?after=1", "")
	other.refuses(http.StatusInternalServerError, "damaged.jsonl", "GET", "/sessions/damaged/cost", "")
	if x := other.get("/sessions/damaged/verify"); !strings.Contains(string(x.body), "damaged.jsonl") || strings.Contains(string(x.body), `"defects":[]`) {
		t.Errorf("%s", x.body)
	}
}

package web_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/web"
)

const hostileName = `"><script>alert(1)</script>`

// cashier pays after a review, and then waits for a receipt.
func cashier(log *eventlog.Log, paid *int) *flow.Agent[jsontext.Value] {
	return &flow.Agent[jsontext.Value]{Name: "cashier" + hostileName, Log: log, Options: flow.Options{InProcess: -1}, Turn: func(ctx context.Context, t *flow.Turn[jsontext.Value]) error {
		_, err := flow.Do(ctx, t, flow.Effect{Name: "pay" + hostileName, Class: event.EffectUnsafeOnce, Arguments: map[string]int{"amount": 17}, Review: &flow.Question{Prompt: "Pay " + hostileName + "?"}},
			func(context.Context) (string, error) { *paid++; return "paid", nil })
		if err != nil {
			return err
		}
		return t.Add(event.Message{Role: event.Assistant, Parts: []event.Part{event.Text("done")}})
	}}
}

// desk is a server for writing whose cashier waits for a review in session s.
func desk(t *testing.T, o web.Options) (s *site, a *flow.Agent[jsontext.Value], paid *int) {
	t.Helper()
	o.By, paid = "ada@desk", new(int)
	s = siteOver(t, eventlog.Open(memory.New()), o)
	a = cashier(s.log, paid)
	var pause *flow.Hibernated
	if _, err := a.Run(t.Context(), "s", flow.Text("17, please")); !errors.As(err, &pause) {
		t.Fatal(err)
	}
	return s, a, paid
}

// submit sends a form as a browser does.
func (s *site) submit(path string, form url.Values, headers ...string) (status int, body string) {
	s.t.Helper()
	r := s.request("POST", path, append([]string{"Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"}, headers...)...)
	r.Body = io.NopCloser(strings.NewReader(form.Encode()))
	return do(s.t, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, r)
}

// field is the value of a hidden field of a page.
func field(t *testing.T, body, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("the page has no field %s:\n%s", name, body)
	}
	return html.UnescapeString(found[1])
}

func TestAnAnswerOnThePage(t *testing.T) {
	s, a, paid := desk(t, web.Options{Write: true})
	cookie := []string{"Cookie", s.cookie(), "Origin", s.url}
	body := s.page("/runs")
	for _, want := range []string{"hibernated", "Approve", "&#34;amount&#34;", "17"} {
		if !strings.Contains(strings.ReplaceAll(body, `"amount"`, "&#34;amount&#34;"), want) {
			t.Errorf("the page does not have %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, "<script>") {
		t.Errorf("a text of the agent is a part of the page:\n%s", body)
	}
	form := url.Values{"review": {field(t, body, "review")}, "digest": {field(t, body, "digest")}, "decision": {"approved"}, "reason": {"it is right"}}
	other := url.Values{"review": form["review"], "digest": {string(event.DigestOf([]byte("18")))}, "decision": {"approved"}}
	if status, answer := s.submit("/runs/s/decide", other, cookie...); status != http.StatusConflict || !strings.Contains(answer, "does not belong to the review") {
		t.Errorf("an approval of other arguments: %d %s", status, answer)
	}
	if status, answer := s.submit("/runs/s/decide", form, cookie...); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, answer)
	}
	if status, answer := s.submit("/runs/s/decide", form, cookie...); status != http.StatusConflict || !strings.Contains(answer, "read the page again") {
		t.Errorf("the second answer: %d %s", status, answer)
	}
	h, err := a.Resume(t.Context(), flow.Ref{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := h.Wait(t.Context()); err != nil || out.Text() != "done" || *paid != 1 {
		t.Fatalf("%v %q, paid %d times", err, out.Text(), *paid)
	}
	by := ""
	for e, err := range s.log.Read(t.Context(), "s", eventlog.All()) {
		if x, ok, _ := event.Decode[event.ApprovalResolution](&e); ok && err == nil {
			by = x.By + ": " + x.Reason
		}
	}
	if by != "ada@desk: it is right" {
		t.Errorf("the answer is by %q", by)
	}
	if body := s.page("/runs"); strings.Contains(body, "Approve") {
		t.Errorf("the page still asks:\n%s", body)
	}
}

func TestAnAbortAndAnInputOnThePage(t *testing.T) {
	s, _, paid := desk(t, web.Options{Write: true})
	cookie := []string{"Cookie", s.cookie(), "Origin", s.url, "Sec-Fetch-Site", "same-origin"}
	if status, answer := s.submit("/runs/s/post", url.Values{"text": {"and 18"}}, cookie...); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, answer)
	}
	if status, answer := s.submit("/runs/s/abort", url.Values{"reason": {"closed"}}, cookie...); status != http.StatusSeeOther {
		t.Fatalf("%d %s", status, answer)
	}
	info, err := flow.Info(t.Context(), s.log, "s")
	if err != nil || info.Status != flow.StatusAborted || len(info.Inbox) != 1 || *paid != 0 {
		t.Errorf("%v, %s, %d inputs, paid %d times", err, info.Status, len(info.Inbox), *paid)
	}
	for path, want := range map[string]int{"/runs/s/nothing": 404, "/runs/none/abort": 404, "/runs/s/post": 400, "/runs/s/decide": 409, "/runs/s/resolve": 409} {
		if status, answer := s.submit(path, url.Values{}, cookie...); status != want {
			t.Errorf("%s: %d, want %d: %s", path, status, want, answer)
		}
	}
	if status, _ := s.submit("/runs/s/post", url.Values{"text": {strings.Repeat("x", 1<<20)}}, cookie...); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a long input: %d", status)
	}
}

// What no page of the server sent changes nothing.
func TestRefusedForms(t *testing.T) {
	s, _, _ := desk(t, web.Options{Write: true})
	reader, _, _ := desk(t, web.Options{})
	head := func(s *site) event.Head {
		at, err := s.log.Head(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	before, beforeReader := head(s), head(reader)
	cookie := s.cookie()
	abort := url.Values{"reason": {"x"}}
	for name, c := range map[string]struct {
		s       *site
		headers []string
	}{
		"no cookie":         {s, []string{"Origin", s.url}},
		"no origin":         {s, []string{"Cookie", cookie}},
		"origin of a file":  {s, []string{"Cookie", cookie, "Origin", "null"}},
		"another origin":    {s, []string{"Cookie", cookie, "Origin", "http://127.0.0.1:1"}},
		"another site":      {s, []string{"Cookie", cookie, "Origin", s.url, "Sec-Fetch-Site", "cross-site"}},
		"no page":           {s, []string{"Cookie", cookie, "Origin", s.url, "Sec-Fetch-Site", "none"}},
		"a bound name":      {s, []string{"Cookie", cookie, "Origin", "http://evil.example", "Host", "evil.example"}},
		"a server to read":  {reader, []string{"Cookie", reader.cookie(), "Origin", reader.url}},
		"a foreign program": {s, []string{"Authorization", "Bearer x"}},
	} {
		if status, body := c.s.submit("/runs/s/abort", abort, c.headers...); status < 400 || status >= 500 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if head(s) != before || head(reader) != beforeReader {
		t.Error("a refused form changed the session")
	}
	if body := reader.page("/runs"); strings.Contains(body, "<form method") || !strings.Contains(body, "logtool agent approve s ") {
		t.Errorf("the page of a server to read:\n%s", body)
	}
}

// readsOf counts the reads of each session.
type readsOf struct {
	eventlog.Store
	mu *sync.Mutex
	n  map[string]int
}

func (x readsOf) Unwrap() eventlog.Store { return x.Store }

func (x readsOf) Read(ctx context.Context, session string, r eventlog.Span) iter.Seq2[event.Event, error] {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.n[session]++
	return x.Store.Read(ctx, session, r)
}

// The page of agents reads no session twice that no agent ran. A session that an agent claims, or
// that gets an input, is on it.
func TestAgentsReadTheSessionsOfAgents(t *testing.T) {
	store := readsOf{jsonl.New(t.TempDir()), &sync.Mutex{}, map[string]int{}}
	s := siteOver(t, eventlog.Open(store), web.Options{})
	for i := range 20 {
		s.add(fmt.Sprintf("plain-%02d", i), event.New(event.Session{Title: "t"}), event.UserMessage("words"))
	}
	var pause *flow.Hibernated
	agent := cashier(s.log, new(int))
	if _, err := agent.Run(t.Context(), "ran", flow.Text("17, please")); !errors.As(err, &pause) {
		t.Fatal(err)
	}
	if _, err := fork.At(t.Context(), s.log, "ran", fork.Point{}, fork.Options{ID: "forked"}); err != nil {
		t.Fatal(err)
	}
	want := func(sessions ...string) {
		t.Helper()
		body := s.page("/runs?all=")
		for _, id := range []string{"plain-00", "plain-07", "ran", "forked"} {
			if got := strings.Contains(body, `href="/s/`+id+`"`); got != slices.Contains(sessions, id) {
				t.Errorf("%s is on the page: %v", id, got)
			}
		}
	}
	want("ran")
	clear(store.n)
	want("ran")
	for id, n := range store.n {
		if strings.HasPrefix(id, "plain") {
			t.Errorf("%s is read %d times", id, n)
		}
	}
	for id, post := range map[string]bool{"plain-00": true, "plain-07": false, "forked": false} {
		in := flow.Text("18, please")
		in.ID, in.PostOnly = event.NewID().String(), post
		if _, err := agent.Send(t.Context(), id, in); err != nil && !errors.As(err, &pause) {
			t.Fatal(id, err)
		}
	}
	want("plain-00", "plain-07", "ran", "forked")
}

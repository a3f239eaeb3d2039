package main

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/htmlpage"
	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/internal/transcript"
	"github.com/convlog/convlog/prices"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/web"
)

// The API answers what the commands print with --json, and the pages show it: for each session of
// the bundled transcripts, with a fork, a rewind and a snapshot.
func TestAPIAgrees(t *testing.T) {
	store := filepath.Join(t.TempDir(), "log")
	const one = "3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67"
	for _, args := range [][]string{
		{"import", filepath.Join("..", "..", "testdata", "transcripts", "samples")}, {"fork", one, "--as", "forked", "--label", "x"}, {"append", "forked", "another way"},
		{"copy", one, "--as", "copied"}, {"rewind", "copied", "--to-turn", "0", "--before", "--label", "dead end"}, {"state", "snapshot", "copied"}, {"append", "copied", "more"},
	} {
		if code := quiet().run(t.Context(), append([]string{"--store", store}, args...)); code != 0 {
			t.Fatalf("%s: %d", args, code)
		}
	}
	if n := agree(t, store); n < 5 {
		t.Errorf("compared only %d sessions", n)
	}
}

// agreement compares the commands, the API and the pages of one store.
type agreement struct {
	t          *testing.T
	store      string
	url, token string
}

// onServer calls do with the address and the token of a server of a store.
func onServer(t *testing.T, store string, do func(url, token string) error) {
	t.Helper()
	a := quiet()
	a.store, a.wait = store, time.Minute
	err := a.reading(func(log *eventlog.Log) error {
		h, err := web.New(log, web.Options{Prices: prices.Builtin(), Zone: time.Local})
		if err != nil {
			return err
		}
		server := httptest.NewServer(h)
		defer server.Close()
		at, err := url.Parse(h.PlainURL(strings.TrimPrefix(server.URL, "http://")))
		if err != nil {
			return err
		}
		return do(server.URL, at.Query().Get("token"))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// agree compares all sessions of a store, and returns their number.
func agree(t *testing.T, store string) (sessions int) {
	t.Helper()
	onServer(t, store, func(url, token string) error {
		x := &agreement{t, store, url, token}
		x.same("/sessions?all=1", "sessions", "cursor", "ls", "--long", "--all")
		x.same("/stats?all=1", "", "", "stats", "--all")
		for _, row := range x.answered("/sessions?all=1&sort=id", "sessions", "cursor") {
			x.session(row)
			sessions++
		}
		return nil
	})
	return sessions
}

// listed is what the comparison needs of a session.
type listed struct {
	ID        string     `json:"session"`
	Seq       int64      `json:"seq"`
	Cost      event.Cost `json:"cost"`
	Unpriced  int        `json:"unpriced"`
	Estimate  event.Cost `json:"estimate"`
	Estimated int        `json:"estimated"`
	Kind      string     `json:"kind"`
	Parent    string     `json:"parent"`
	Missing   bool       `json:"missing"`
}

func (x *agreement) session(text string) {
	var row listed
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		x.t.Fatal(err)
	}
	id, path := row.ID, "/sessions/"+url.PathEscape(row.ID)
	if one := x.answered(path, "", ""); one[0] != text {
		x.t.Errorf("%s: the session is\n%s\nin the list\n%s", id, one[0], text)
	}
	x.same(path+"/events", "events", "after", "show", id)
	x.same(path+"/history", "messages", "cursor", "history", id)
	x.same(path+"/files", "files", "", "files", id)
	cost := x.same(path+"/cost", "", "", "cost", id)
	state := x.same(path+"/state", "", "", "state", "show", id)
	tree := x.same(path+"/tree", "sessions", "", "tree", id)
	check := x.same(path+"/verify", "", "", "verify", id)
	x.costPage(&row, cost)
	x.treePage(id, tree)
	x.checkPage(id, check)
	x.statePage(&row, state)
	if row.Kind == "fork" && !row.Missing {
		x.diff(row.Parent, id)
	}
}

// printed are the lines that a command prints with --json, in canonical form.
func (x *agreement) printed(args ...string) (lines []string) {
	x.t.Helper()
	var out bytes.Buffer
	a := quiet()
	a.out = &out
	if code := a.run(x.t.Context(), append([]string{"--store", x.store, "--json"}, args...)); code == 2 {
		x.t.Fatalf("%s: %d", args, code)
	}
	for line := range strings.Lines(out.String()) {
		lines = append(lines, x.canonical([]byte(line)))
	}
	return lines
}

func (x *agreement) canonical(text []byte) string {
	v := jsontext.Value(text)
	if err := v.Format(jsontext.CanonicalizeRawInts(false), jsontext.ReorderRawObjects(true), jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		x.t.Fatalf("%v: %.200s", err, text)
	}
	return string(v)
}

// get is the body of an answer.
func (x *agreement) get(path, accept string) (status int, body []byte) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), "GET", x.url+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Accept", accept)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return answer.StatusCode, body
}

// answered are the rows of all parts of an answer, in canonical form; the whole answer without a name
// of the rows. A problem has none.
func (x *agreement) answered(path, rows, cursor string) (all []string) {
	x.t.Helper()
	for at := path; at != ""; {
		status, body := x.get("/api/v1"+at, "application/json")
		if status != http.StatusOK {
			return all
		}
		if rows == "" {
			return []string{x.canonical(body)}
		}
		var part map[string]jsontext.Value
		var list []jsontext.Value
		err := json.Unmarshal(body, &part, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if err == nil {
			err = json.Unmarshal(part[rows], &list, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		}
		if err != nil {
			x.t.Fatalf("%s: %v", path, err)
		}
		for _, row := range list {
			all = append(all, x.canonical(row))
		}
		if at = ""; part["next"] != nil {
			at = path + map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + cursor + "=" + strings.Trim(string(part["next"]), `"`)
		}
	}
	return all
}

// same compares an answer with what a command prints, and returns the rows. Commands print a sum
// after the check of a session.
func (x *agreement) same(path, rows, cursor string, args ...string) []string {
	x.t.Helper()
	answered, printed := x.answered(path, rows, cursor), x.printed(args...)
	if args[0] == "verify" && len(printed) > 1 {
		printed = printed[:1]
	}
	if !slices.Equal(answered, printed) {
		for i := range max(len(answered), len(printed)) {
			if i >= len(answered) || i >= len(printed) || answered[i] != printed[i] {
				x.t.Errorf("%s: row %d of %d and %d:\n%.2000s\n%s\n%.2000s", path, i, len(answered), len(printed), strings.Join(answered[min(i, len(answered)):min(i+1, len(answered))], ""), args, strings.Join(printed[min(i, len(printed)):min(i+1, len(printed))], ""))
				break
			}
		}
	}
	return answered
}

var tags = regexp.MustCompile(`<[^>]*>`)

// page is the text of a page without tags.
func (x *agreement) page(path string) (raw, text string) {
	x.t.Helper()
	status, body := x.get(path, "text/html")
	if status != http.StatusOK {
		x.t.Errorf("%s: %d", path, status)
	}
	return string(body), html.UnescapeString(tags.ReplaceAllString(string(body), ""))
}

func (x *agreement) costPage(row *listed, cost []string) {
	x.t.Helper()
	if len(cost) == 0 {
		return
	}
	var c struct {
		Own projection.Spend `json:"own"`
	}
	if err := json.Unmarshal([]byte(cost[0]), &c); err != nil {
		x.t.Fatal(err)
	}
	if c.Own.Cost != row.Cost || c.Own.Estimate != row.Estimate || c.Own.Unpriced != row.Unpriced {
		x.t.Errorf("%s: the cost is %+v, in the list %+v", row.ID, c.Own, row)
	}
	if _, text := x.page("/s/" + url.PathEscape(row.ID)); !strings.Contains(text, htmlpage.Spend(c.Own)) {
		x.t.Errorf("the page of %s has no %q", row.ID, htmlpage.Spend(c.Own))
	}
}

func (x *agreement) treePage(id string, tree []string) {
	x.t.Helper()
	raw, text := x.page("/s/" + url.PathEscape(id) + "/tree")
	for _, line := range tree[:min(len(tree), 50)] {
		var node struct {
			Session string `json:"session"`
			Events  int64  `json:"events"`
		}
		if err := json.Unmarshal([]byte(line), &node); err != nil {
			x.t.Fatal(err)
		}
		if !strings.Contains(raw, `href="/s/`+url.PathEscape(node.Session)+`"`) || !strings.Contains(text, transcript.Count(node.Events, "event")) {
			x.t.Errorf("the tree of %s has no %+v", id, node)
		}
	}
}

func (x *agreement) checkPage(id string, check []string) {
	x.t.Helper()
	var c struct {
		Defects []jsontext.Value `json:"defects"`
		More    int64            `json:"more_defects"`
	}
	if err := json.Unmarshal([]byte(check[0]), &c); err != nil {
		x.t.Fatal(err)
	}
	want := "As it was written"
	if n := int64(len(c.Defects)) + c.More; n > 0 {
		want = "Damaged: " + transcript.Count(n, "defect")
	}
	if _, text := x.page("/s/" + url.PathEscape(id) + "/verify?check=now"); !strings.Contains(text, want) {
		x.t.Errorf("the page of the check of %s has no %q", id, want)
	}
}

// statePage compares two states. A page shows the beginning of a state.
func (x *agreement) statePage(row *listed, state []string) {
	x.t.Helper()
	if len(state) == 0 {
		return
	}
	var parts map[string]jsontext.Value
	if err := json.Unmarshal([]byte(state[0]), &parts, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		x.t.Fatal(err)
	}
	for _, name := range []string{"usage", "info"} {
		want, err := rawjson.Indent(parts[name])
		if err != nil {
			x.t.Fatal(err)
		}
		_, text := x.page(fmt.Sprintf("/s/%s/at/%d?state=%s", url.PathEscape(row.ID), row.Seq, name))
		for line := range strings.Lines(string(want[:min(len(want), 10_000)])) {
			if line = transcript.Visible(strings.Trim(line, " ,\n")); len(line) < 200 && !strings.Contains(text, line) {
				x.t.Errorf("the page of the state %s of %s has no %s", name, row.ID, line)
			}
		}
	}
}

// diff compares a fork with its parent.
func (x *agreement) diff(a, b string) {
	x.t.Helper()
	path := "/diff?" + url.Values{"a": {a}, "b": {b}}.Encode()
	printed := x.printed("diff", a, b)
	if len(printed) == 0 {
		x.t.Errorf("diff %s %s prints nothing", a, b)
		return
	}
	_, body := x.get("/api/v1"+path+"&limit=1", "application/json")
	var d struct {
		A struct {
			Seq    int64 `json:"seq"`
			Events int64 `json:"events"`
		} `json:"a"`
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(body, &d); err != nil {
		x.t.Fatal(err)
	}
	if err := json.Unmarshal(body, &members); err != nil {
		x.t.Fatal(err)
	}
	delete(members, "events")
	delete(members, "next")
	text, err := json.Marshal(members)
	if err != nil {
		x.t.Fatal(err)
	}
	if head := x.canonical(text); head != printed[0] {
		x.t.Errorf("%s: %s, printed %s", path, head, printed[0])
	}
	if events := x.answered(path, "events", "cursor"); !slices.Equal(events, printed[1:]) {
		x.t.Errorf("%s: %d events, printed %d", path, len(events), len(printed)-1)
	}
	if _, text := x.page(path); !strings.Contains(text, fmt.Sprintf("to #%d", d.A.Seq)) || !strings.Contains(text, transcript.Thousands(d.A.Events)) {
		x.t.Errorf("the page %s has no %+v", path, d.A)
	}
}

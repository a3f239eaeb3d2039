package web_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/htmlpage/htmltest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/web"
)

// newFolderSite is a site over a log of files in a temporary folder.
func newFolderSite(t *testing.T, o web.Options) (s *site, folder string) {
	t.Helper()
	folder = t.TempDir()
	return siteOver(t, eventlog.Open(jsonl.New(folder)), o), folder
}

// addEach appends events one by one.
func (s *site) addEach(session string, events ...event.Event) {
	s.t.Helper()
	for _, e := range events {
		s.add(session, e)
	}
}

// hostileText is a text that must not become an element.
const hostileText = `</a></script><script>alert(1)</script><img src=x onerror=alert(1)>`

// checkHostile fails if the hostile text is an element of a page, or not on it.
func checkHostile(t *testing.T, body string) {
	t.Helper()
	if err := htmltest.Check(body); err != nil {
		t.Error(err)
	}
	if !strings.Contains(body, html.EscapeString("<script>")) {
		t.Error("the text is missing")
	}
}

// The page of a tree has each session and branch of the tree, in the order of the command, and
// each leads to its page.
func TestTree(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	s.addEach("root", event.UserMessage(hostileText), event.AssistantMessage("a"), event.UserMessage("b"), event.AssistantMessage("c"))
	if _, err := fork.Rewind(t.Context(), s.log, "root", fork.AtSeq(2), fork.Options{Label: "second try"}); err != nil {
		t.Fatal(err)
	}
	s.add("root", event.UserMessage("d"))
	if _, err := fork.At(t.Context(), s.log, "root", fork.AtSeq(2), fork.Options{ID: "child", Label: hostileText}); err != nil {
		t.Fatal(err)
	}
	s.add("child", event.UserMessage("e"))
	s.add("other", event.UserMessage("not in the tree"))
	body := s.page("/s/child/tree")
	checkHostile(t, body)
	if strings.Contains(body, "not in the tree") {
		t.Error("the page has a session of another tree")
	}
	branches, err := fork.Branches(t.Context(), s.log, "root", true)
	if err != nil || len(branches) != 1 {
		t.Fatal(branches, err)
	}
	b := branches[0]
	main := body[strings.Index(body, `class="tree"`):]
	var links []string
	for _, m := range regexp.MustCompile(`class="(?:at|title)" href="([^"]*)"`).FindAllStringSubmatch(main, -1) {
		links = append(links, m[1])
	}
	want := []string{"/s/root", fmt.Sprintf("/s/root/e/%d", b.Base), fmt.Sprintf("/s/root?from=%d", b.Own[0].From), "/s/root/e/2", "/s/child"}
	if fmt.Sprint(links) != fmt.Sprint(want) {
		t.Errorf("the tree leads to\n%v, want\n%v", links, want)
	}
	if want := fmt.Sprintf("rewound #%d–#%d", b.Own[0].From, b.Own[0].To); !strings.Contains(main, want) || !strings.Contains(main, "second try") {
		t.Errorf("the branch is not on the page: want %q", want)
	}
	if !strings.Contains(main, `aria-current="true"`) || strings.Count(body, `aria-current="page"`) != 1 {
		t.Error("the page does not mark the session and its tab")
	}
	for _, link := range links {
		s.page(link)
	}
}

// A tree of many sessions comes in parts, and the first part has the session of the page.
func TestLongTree(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	s.add("root", event.UserMessage("a"))
	const forks = 130
	for i := range forks {
		if _, err := fork.At(t.Context(), s.log, "root", fork.AtSeq(1), fork.Options{ID: fmt.Sprintf("f%03d", i), Force: true}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]int{}
	path := "/s/f129/tree?from=1"
	for path != "" {
		body := s.page(path)
		for _, m := range regexp.MustCompile(`class="title" href="/s/(f\d+)"`).FindAllStringSubmatch(body, -1) {
			seen[m[1]]++
		}
		path = ""
		if m := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(body); m != nil {
			path = html.UnescapeString(m[1])
		}
	}
	if len(seen) != forks {
		t.Errorf("the parts have %d sessions, want %d", len(seen), forks)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is %d times in the parts", id, n)
		}
	}
	if body := s.page("/s/f129/tree"); !strings.Contains(body, `<div class="node on">`) {
		t.Error("the page does not show its session")
	}
}

package web_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/web"
)

// A comparison has the events of both sides after the last common event, each once.
func TestDiff(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	s.addEach("a", event.UserMessage("common question"), event.AssistantMessage(hostileText))
	if _, err := fork.At(t.Context(), s.log, "a", fork.AtSeq(2), fork.Options{ID: "b", Force: true}); err != nil {
		t.Fatal(err)
	}
	const events = 130
	for i := range events {
		s.add("a", event.UserMessage(fmt.Sprintf("of a %d.", i)))
		if i < 5 {
			s.add("b", event.UserMessage(fmt.Sprintf("of b %d. %s", i, hostileText)))
		}
	}
	d, err := fork.Diff(t.Context(), s.log, fork.Tip{Session: "a"}, fork.Tip{Session: "b"})
	if err != nil {
		t.Fatal(err)
	}
	body := s.page("/diff?a=a&b=b")
	checkHostile(t, body)
	if !strings.Contains(body, fmt.Sprintf(`Common up to <a href="/s/%s/e/%d">#%d</a>`, d.Ancestor.Session, d.Ancestor.Seq, d.Ancestor.Seq)) || strings.Contains(body, "<p>common question") {
		t.Error("the page does not begin after the last common event")
	}
	for _, side := range []*fork.Side{&d.A, &d.B} {
		if !strings.Contains(body, fmt.Sprintf(`<td class="num">%d</td></tr>`, side.Len())) {
			t.Errorf("the page does not count the %d events of %s", side.Len(), side.Tip.Session)
		}
	}
	if got := s.each("/diff?a=a&b=b", `of a (\d+)\.</p>`); len(got) != events || got[0] != "0" || got[events-1] != fmt.Sprint(events-1) {
		t.Errorf("the pages have %d events of a: %v", len(got), got)
	}
	if got := s.each("/diff?a=a&b=b", `<p>of b (\d+)\. `); len(got) != 5 {
		t.Errorf("the pages have the events %v of b", got)
	}
	s.add("other", event.UserMessage("unrelated"))
	if body := s.page("/diff?a=a&b=other"); !strings.Contains(body, "no event in common") {
		t.Error("unrelated sessions have something in common")
	}
}

// Two sessions without a lineage in common are compared as attempts: the first different call, and
// the changed files.
func TestTwoAttempts(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	for _, session := range []string{"a", "b"} {
		s.add(session, event.New(event.Session{Source: event.SessionSource{Format: "claude"}}), event.UserMessage("the task"))
		s.write(session, 1, "/x/same.txt", "the same")
	}
	s.write("a", 2, "/x/"+hostileText, "one")
	s.write("b", 2, "/x/other.txt", "two")
	body := s.page("/diff?a=a&b=b")
	checkHostile(t, body)
	for _, want := range []string{"First different call, after 1 equal one", "same.txt", "other.txt", "only in B", ">same<"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not have %q:\n%s", want, body)
		}
	}
}

// The branches of a tree lead to their comparisons.
func TestTreeLeadsToDiff(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	s.addEach("x@1", event.UserMessage("a"), event.AssistantMessage("b"), event.UserMessage("c"), event.AssistantMessage("rewound answer"))
	if _, err := fork.Rewind(t.Context(), s.log, "x@1", fork.AtSeq(2)); err != nil {
		t.Fatal(err)
	}
	s.add("x@1", event.UserMessage("second question"))
	m := regexp.MustCompile(`<a href="(/diff[^"]*)">compare`).FindStringSubmatch(s.page("/s/" + url.PathEscape("x@1") + "/tree"))
	if m == nil {
		t.Fatal("the branch has no comparison")
	}
	body := s.page(html.UnescapeString(m[1]))
	if !strings.Contains(body, "rewound answer") || !strings.Contains(body, "second question") {
		t.Error("the comparison lacks a side")
	}
}

package web_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/files"
	"github.com/convlog/convlog/interop/formats"
	"github.com/convlog/convlog/web"
)

// write is a call that writes a file, and its result.
func (s *site) write(session string, call int, path, text string) {
	s.t.Helper()
	id := fmt.Sprintf("c%d", call)
	arguments, err := json.Marshal(map[string]string{"file_path": path, "content": text})
	if err != nil {
		s.t.Fatal(err)
	}
	s.addEach(session, event.New(event.Message{Role: event.Assistant, Parts: []event.Part{event.ToolCall(id, "Write", arguments)}}), event.ToolOutput(id, "Write", []byte("done"), false))
}

// The page of files has the numbers of the library for each file, and each change once, in order.
func TestFiles(t *testing.T) {
	s, _ := newFolderSite(t, web.Options{})
	s.add("s", event.New(event.Session{CWD: "/w", Source: event.SessionSource{Format: "claude"}}))
	const changes = 60
	for i := range changes {
		s.write("s", i, fmt.Sprintf("/w/f%d.txt", i%3), fmt.Sprintf("line %d\n%s\n", i, hostileText))
	}
	var list files.List
	var seqs []string
	for c, err := range files.Of(t.Context(), s.log, "s", eventlog.All(), formats.FileTools) {
		if err != nil {
			t.Fatal(err)
		}
		list.Add(&c)
		seqs = append(seqs, fmt.Sprint(c.Seq))
	}
	if len(list.Files) != 3 || len(seqs) != changes {
		t.Fatalf("%d files and %d changes", len(list.Files), len(seqs))
	}
	body := s.page("/s/s/files")
	checkHostile(t, body)
	for _, f := range list.Files {
		row := fmt.Sprintf(`<a href="/s/s/files?file=%s" dir="auto">%s</a></td>
<td class="num">%d</td><td class="num">%d</td><td class="num">–</td><td class="num"><b class="add">+%d</b> <b class="del">−%d</b></td><td class="num">#%d</td><td>%s</td>`,
			url.QueryEscape(f.Path), strings.TrimPrefix(f.Path, "/w/"), f.Reads, f.Changes, f.Added, f.Removed, f.Last, f.Text)
		if !strings.Contains(body, row) {
			t.Errorf("the page has no row\n%s", row)
		}
	}
	if got := s.each("/s/s/files", `<section class="entry" id="e(\d+)"`); fmt.Sprint(got) != fmt.Sprint(seqs) {
		t.Errorf("the pages have the changes %v, want %v", got, seqs)
	}
	one := s.each("/s/s/files?file="+url.QueryEscape("/w/f1.txt"), `<b dir="auto">([^<]*)</b>`)
	if len(one) != changes/3 {
		t.Errorf("the page of a file has %d changes, want %d", len(one), changes/3)
	}
	for _, name := range one {
		if name != "f1.txt" {
			t.Errorf("the page of f1.txt has a change of %s", name)
		}
	}
}

// each follows the links to the next parts of a page, and collects what an expression matches.
func (s *site) each(path, pattern string) (all []string) {
	s.t.Helper()
	for path != "" {
		body := s.page(path)
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(body, -1) {
			all = append(all, m[1])
		}
		path = ""
		if m := regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(body); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	return all
}

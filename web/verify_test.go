package web_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/upkeep/verify"
	"github.com/convlog/convlog/web"
)

// A check says up to which head the session is as it was written, and a flipped byte turns the
// badge. No view checks by itself.
func TestVerify(t *testing.T) {
	s, folder := newFolderSite(t, web.Options{})
	s.addEach("s", event.UserMessage("one"), event.AssistantMessage("two"), event.UserMessage("three"))
	if body := s.page("/s/s/verify"); !strings.Contains(body, "Not checked") {
		t.Error("the page checks without being asked")
	}
	report, err := verify.Session(t.Context(), s.log, "s")
	if err != nil || report.Damaged() != 0 {
		t.Fatal(report, err)
	}
	body := s.page("/s/s/verify?check=now")
	if !strings.Contains(body, "As it was written") || !strings.Contains(body, fmt.Sprintf("up to #%d</span> <code>%s</code>", report.Head.Seq, report.Head.Hash)) {
		t.Errorf("the page does not name the head %v:\n%s", report.Head, body)
	}
	if body := s.page("/s/s/files"); !strings.Contains(body, "✓ checked to #3") {
		t.Error("the other pages have no badge")
	}
	s.add("s", event.AssistantMessage("four"))
	if body := s.page("/s/s/verify"); !strings.Contains(body, "1 event came after the check") {
		t.Error("the page does not say that the session grew")
	}
	flip(t, folder, "two", "twO")
	report, err = verify.Session(t.Context(), s.log, "s")
	if err != nil || report.Damaged() == 0 {
		t.Fatal(report, err)
	}
	body = s.page("/s/s/verify?check=now")
	if strings.Contains(body, "As it was written") {
		t.Fatal("a flipped byte does not turn the badge")
	}
	for _, d := range report.Defects {
		place := fmt.Sprintf(`%s, byte %d<`, d.Path, d.Offset)
		if !strings.Contains(body, place) || !strings.Contains(body, "<td>"+d.Rule+"</td>") {
			t.Errorf("the page does not name the defect %s at %s", d, place)
		}
	}
	if body := s.page("/s/s/verify"); !strings.Contains(body, "✗") {
		t.Error("the other views have no badge of the damage")
	}
}

// flip replaces a text in the one file of a folder that has it.
func flip(t *testing.T, folder, old, new string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if changed := bytes.Replace(text, []byte(old), []byte(new), 1); !bytes.Equal(text, changed) {
			if err := os.WriteFile(name, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no file has %q", old)
}

// A session that cannot be read has a page of the check.
func TestVerifyUnreadable(t *testing.T) {
	s, folder := newFolderSite(t, web.Options{})
	s.addEach("s", event.UserMessage("one"), event.AssistantMessage("two"))
	flip(t, folder, `{`, `[`)
	status, body := s.send(s.request("GET", "/s/s/verify?check=now", "Accept", "text/html"))
	if status != 200 || !strings.Contains(body, "Damaged") {
		t.Errorf("%d %s", status, body)
	}
}

package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// inlineLink matches the target of a link or of a picture.
	inlineLink = regexp.MustCompile(`(?:\]\(|<\w+ [^>]*src(?:set)?=")([^)\s"]+)[)"]`)
	// notInAnchor matches the characters that GitHub leaves out of the anchor of a heading.
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// Every link of a page to a file of the repository, or to a heading, has a target.
func TestLinks(t *testing.T) {
	root := moduleRoot(t)
	checked := 0
	for _, page := range markdownPages(t, root) {
		for _, m := range inlineLink.FindAllStringSubmatch(proseOf(t, page), -1) {
			name, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(name, "://") || strings.HasPrefix(name, "mailto:") {
				continue
			}
			checked++
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(name))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !anchorsOf(t, target)[anchor] {
				t.Errorf("%s links to %s: the page has no such heading", page, m[1])
			}
		}
	}
	if checked < 50 {
		t.Errorf("found only %d links", checked)
	}
}

// markdownPages returns the pages of the root and of docs, and the other pages about the format.
func markdownPages(t *testing.T, root string) (pages []string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(name string, _ fs.DirEntry, err error) error {
		if filepath.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(pages, filepath.Join(root, "store", "jetstream", "FORMAT.md"))
}

// proseOf returns a page without its code blocks.
func proseOf(t *testing.T, page string) string {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var prose strings.Builder
	inCode := false
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		} else if !inCode {
			prose.WriteString(line)
		}
	}
	return prose.String()
}

// anchorsOf returns the anchors that GitHub gives to the headings of a page.
func anchorsOf(t *testing.T, page string) map[string]bool {
	anchors := map[string]bool{}
	for line := range strings.Lines(proseOf(t, page)) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			heading = notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			anchors[strings.ReplaceAll(heading, " ", "-")] = true
		}
	}
	return anchors
}

package pick

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/convlog/convlog/internal/terminal"
)

func typed(m *model, keys ...tea.KeyPressMsg) {
	for _, k := range keys {
		m.Update(k)
	}
}

func text(s string) tea.KeyPressMsg { return tea.KeyPressMsg{Text: s} }

func key(code rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: code} }

func list() *model {
	items := []Item{{Title: "Fix the login", About: "claude", Words: "/home/ada/site"}, {Title: "Count boats", About: "codex"}, {Title: "Fix the tide table", About: "pi"}}
	return newModel(items, func(i int) string { return "first line\nlast of " + items[i].Title })
}

// The list narrows by words in the title, the folder and the program, and enter chooses.
func TestTheListNarrows(t *testing.T) {
	m := list()
	for typing, want := range map[string]int{"": 3, "fix": 2, "TIDE fix": 1, "site": 1, "codex": 1, "nothing": 0} {
		m.typed = typing
		m.narrow()
		if len(m.shown) != want {
			t.Errorf("%q: %d items, not %d", typing, len(m.shown), want)
		}
	}
	m = list()
	typed(m, text("nothing"), key(tea.KeyEnter))
	if m.chosen != -1 {
		t.Errorf("chose %d of none", m.chosen)
	}
	m = list()
	typed(m, text("fix"), key(tea.KeyDown), key(tea.KeyDown), key(tea.KeyEnter))
	if m.chosen != 2 {
		t.Errorf("chose %d", m.chosen)
	}
	m = list()
	typed(m, text("fixx"), key(tea.KeyBackspace))
	if len(m.shown) != 2 {
		t.Errorf("%d items after backspace", len(m.shown))
	}
}

// Every line fits the terminal, and the preview of the marked item is beside the list.
func TestTheListFits(t *testing.T) {
	for _, width := range []int{20, 80, 120} {
		m := list()
		m.items[0].Title = strings.Repeat("wide 界 ", 40)
		m.Update(tea.WindowSizeMsg{Width: width, Height: 10})
		lines := strings.Split(m.screen(), "\n")
		if len(lines) > 10 {
			t.Errorf("%d lines at width %d", len(lines), width)
		}
		for _, line := range lines {
			if n := terminal.Columns(line); n > width {
				t.Errorf("a line of %d columns at width %d: %q", n, width, line)
			}
		}
		typed(m, key(tea.KeyDown))
		if width >= 80 && !strings.Contains(m.screen(), "last of Count boats") {
			t.Errorf("no preview at width %d:\n%s", width, m.screen())
		}
	}
}

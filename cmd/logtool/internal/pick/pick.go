// Package pick shows a list on a terminal, in which a user chooses an item: the list narrows as
// one types, and the end of the chosen item is beside it.
package pick

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/internal/terminal"
)

// Item is a line of the list.
type Item struct {
	Title, About string
	// Words are what the typed words are looked for in, beside the title.
	Words string
}

// ErrNone reports that the user has left the list without an item.
var ErrNone = errors.New("no session was chosen")

// One lets the user choose an item, and returns its index. preview is the text of an item.
func One(ctx context.Context, in io.Reader, out io.Writer, items []Item, preview func(int) string) (int, error) {
	m, err := tea.NewProgram(newModel(items, preview), tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out)).Run()
	if err != nil {
		return 0, err
	}
	if last, ok := m.(*model); ok && last.chosen >= 0 {
		return last.chosen, nil
	}
	return 0, ErrNone
}

// model is the state of the list.
type model struct {
	items   []Item
	preview func(int) string

	typed         string
	shown         []int // the items that have the typed words
	at            int   // index in shown
	width, height int
	chosen        int            // -1 before enter
	previews      map[int]string // of the items that were looked at
}

func newModel(items []Item, preview func(int) string) *model {
	m := &model{items: items, preview: preview, width: 80, height: 24, chosen: -1, previews: map[int]string{}}
	m.narrow()
	return m
}

// Init needs no command.
func (m *model) Init() tea.Cmd { return nil }

// Update changes the list by a key, by a pasted text, or by the size of the terminal.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		m.typed += msg.Content
		m.narrow()
	}
	return m, nil
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c", "esc":
		return tea.Quit
	case "enter":
		if len(m.shown) > 0 {
			m.chosen = m.shown[m.at]
			return tea.Quit
		}
	case "up", "ctrl+p":
		m.at = max(0, m.at-1)
	case "down", "ctrl+n":
		m.at = max(0, min(m.at+1, len(m.shown)-1))
	case "backspace":
		if r := []rune(m.typed); len(r) > 0 {
			m.typed = string(r[:len(r)-1])
			m.narrow()
		}
	default:
		m.typed += k.Text
		m.narrow()
	}
	return nil
}

// narrow finds the items that have all typed words, in any case.
func (m *model) narrow() {
	m.shown, m.at = m.shown[:0], 0
	words := strings.Fields(strings.ToLower(m.typed))
	for i := range m.items {
		text := strings.ToLower(m.items[i].Title + " " + m.items[i].About + " " + m.items[i].Words)
		has := true
		for _, w := range words {
			has = has && strings.Contains(text, w)
		}
		if has {
			m.shown = append(m.shown, i)
		}
	}
}

// View is the whole screen.
func (m *model) View() tea.View { return tea.View{Content: m.screen(), AltScreen: true} }

// screen draws the list on the left and the preview on the right.
func (m *model) screen() string {
	rows, left := max(1, m.height-3), max(20, m.width*11/20)
	right := m.width - left - 3
	first := max(0, m.at-rows+1)
	text := m.lines(rows, right)
	var b strings.Builder
	fmt.Fprintf(&b, "> %s█\n", term.Brief(m.typed, max(1, m.width-4)))
	for i := range rows {
		line := ""
		if n := first + i; n < len(m.shown) {
			line = m.line(n, left)
		}
		b.WriteString(pad(line, left))
		if i < len(text) {
			b.WriteString(" │ " + text[i])
		} else if right > 0 {
			b.WriteString(" │")
		}
		b.WriteByte('\n')
	}
	foot := fmt.Sprintf("%d of %d · type to narrow · ↑ ↓ · enter resumes · esc leaves", len(m.shown), len(m.items))
	b.WriteString(term.Brief(foot, max(1, m.width-1)))
	return b.String()
}

// line is the line of item n of the shown ones.
func (m *model) line(n, width int) string {
	item, mark := &m.items[m.shown[n]], "  "
	if n == m.at {
		mark = "▸ "
	}
	about := term.Brief(item.About, width/3)
	title := term.Brief(item.Title, max(1, width-terminal.Columns(about)-4))
	return mark + pad(title, width-terminal.Columns(about)-4) + "  " + about
}

// lines are the last lines of the preview of the marked item.
func (m *model) lines(rows, width int) (all []string) {
	if len(m.shown) == 0 || width < 10 {
		return nil
	}
	i := m.shown[m.at]
	text, ok := m.previews[i]
	if !ok {
		text = m.preview(i)
		m.previews[i] = text
	}
	for line := range strings.Lines(text) {
		all = append(all, term.Brief(line, width))
	}
	return all[max(0, len(all)-rows):]
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-terminal.Columns(text)))
}

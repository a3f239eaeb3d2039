//go:build browser

package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// logtool is the command over one store.
type logtool struct {
	t           *testing.T
	path, store string
}

// built is the folder of the command, once it is built.
var built = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "logtool-") })

// logtoolPath is the path of the command.
var logtoolPath = sync.OnceValues(func() (string, error) {
	dir, err := built()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "logtool")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/logtool")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func newLogtool(t *testing.T) *logtool {
	t.Helper()
	path, err := logtoolPath()
	if err != nil {
		t.Fatal(err)
	}
	return &logtool{t, path, t.TempDir()}
}

func (l *logtool) run(args ...string) string {
	l.t.Helper()
	out, err := exec.CommandContext(l.t.Context(), l.path, append([]string{"--store", l.store}, args...)...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("logtool %q: %v: %s", args, err, out)
	}
	return string(out)
}

// serve starts the server, and returns the address with the token.
func (l *logtool) serve() string {
	l.t.Helper()
	cmd := exec.Command(l.path, "--store", l.store, "serve", "--json")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	lines := bufio.NewScanner(out)
	var at struct{ URL string }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &at) != nil {
		l.t.Fatalf("the server printed %q", lines.Text())
	}
	return at.URL
}

// fill imports the samples of every program, and appends a session that tries to be more than text.
func (l *logtool) fill() {
	l.t.Helper()
	l.run("import", "../../testdata/transcripts/samples")
	for _, text := range []string{
		`<script>window.hacked = 1</script><img src=x onerror="window.hacked=1">`, "[a](javascript:window.hacked=1) ![b](http://192.0.2.1/x.png)",
		"```html\n<svg/onload=window.hacked=1>\n```", "\u202egnp.exe", strings.Repeat("long", 2000), "```\n" + strings.Repeat("wide ", 400) + "\n```", "| a | b |\n|---|---|\n| " + strings.Repeat("wide ", 100) + " | x |",
	} {
		l.run("append", "hostile", text)
	}
}

// axe returns the script that finds faults of accessibility.
func axe(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"npm", "pack", "--silent", "axe-core@4.14.1"}, {"tar", "xzf", "axe-core-4.14.1.tgz", "package/axe.min.js"}} {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	script, err := os.ReadFile(filepath.Join(dir, "package", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// look sets the width and the colours of a tab.
func look(t *testing.T, tab context.Context, width int64, scheme string) {
	t.Helper()
	run(t, tab, chromedp.EmulateViewport(width, 900), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// Each page reads well in the browser: it does not scroll sideways, asks no other server, writes
// no error to the console, has no fault of accessibility, and no text of a session runs.
func TestPages(t *testing.T) {
	l, script := newLogtool(t), axe(t)
	l.fill()
	url := l.serve()
	base, _, _ := strings.Cut(url, "/?")
	tab := newBrowser(t)
	run(t, tab, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`.logo`)))
	requests := chromedp.Events(tab, network.RequestWillBeSent)
	go func() {
		for sent, err := range requests {
			if err != nil {
				return // the tab is closed
			}
			if at := sent.Request.URL; !strings.HasPrefix(at, base) && !strings.HasPrefix(at, "data:") {
				t.Errorf("a page asks for %s", at)
			}
		}
	}()
	messages := chromedp.Console(tab)
	go func() {
		for m, err := range messages {
			if err != nil {
				return // the tab is closed
			}
			if (m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleException) && !strings.HasSuffix(m.URL, "/s/none") {
				t.Errorf("console: %s %s", m.Text, m.URL)
			}
		}
	}()
	const claude = "/s/3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67"
	pages := map[string]string{
		"list": "/", "search": "/search?q=parse", "costs": "/stats", "agents": "/runs", "missing": "/s/none", "compare": "/diff?a=3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67&b=hostile",
		"event": claude + "/e/7", "timeline": claude + "/timeline", "tree": claude + "/tree", "replay": claude + "/at/7", "files": claude + "/files", "check": claude + "/verify",
		"session": claude, "hostile": "/s/hostile",
	}
	for name, path := range pages {
		run(t, tab, chromedp.Navigate(base+path))
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{360, 768, 1280} {
				look(t, tab, width, scheme)
				at := fmt.Sprintf("%s-%d-%s", name, width, scheme)
				if over := value(t, tab, chromedp.Evaluate[int](`document.documentElement.scrollWidth - innerWidth`)); over > 0 {
					t.Errorf("%s scrolls sideways by %d", at, over)
				}
				if width == 360 && scheme == "light" || width == 1280 && scheme == "dark" {
					run(t, tab, chromedp.Evaluate[chromedp.Void](script+"; 0"))
					faults := value(t, tab, chromedp.Evaluate[[]string](`axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")).join("; ")))`, chromedp.EvalAwaitPromise))
					for _, fault := range faults {
						t.Errorf("%s: %s", at, fault)
					}
				}
				screenshot(t, tab, at)
			}
		}
		if value(t, tab, chromedp.Evaluate[bool](`"hacked" in window`)) {
			t.Errorf("%s runs the text of a session", name)
		}
	}
}

// An open page shows the event of another process. A call gets its result in place.
func TestLivePage(t *testing.T) {
	l := newLogtool(t)
	l.run("append", "live", "the first words")
	url := l.serve()
	tab := newBrowser(t)
	base, _, _ := strings.Cut(url, "/?")
	run(t, tab, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`.logo`)), chromedp.Navigate(base+"/s/live"))
	until(t, tab, `document.querySelector('#entries')?.textContent.includes('the first words')`)
	start := time.Now()
	for i := range 5 {
		l.run("append", "live", fmt.Sprint("message ", i))
		until(t, tab, fmt.Sprintf(`document.querySelector('#entries').textContent.includes('message %d')`, i))
	}
	t.Logf("5 events of other processes in %v", time.Since(start))
	if n := value(t, tab, chromedp.Evaluate[int](`document.querySelectorAll('.entry').length`)); n != 6 {
		t.Errorf("the page has %d entries, want 6", n)
	}
}

// The list shows the sessions and the events of other processes, without a change of focus.
func TestLiveList(t *testing.T) {
	l := newLogtool(t)
	l.run("append", "first", "the first words")
	url := l.serve()
	tab := newBrowser(t)
	run(t, tab, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`.logo`)))
	until(t, tab, `document.querySelector('td.title a')?.textContent.includes('the first words')`)
	run(t, tab, chromedp.Evaluate[chromedp.Void](`document.querySelector('td.title a').focus(); window.same = 1; 0`))
	start := time.Now()
	l.run("append", "second", "other words")
	until(t, tab, `document.querySelectorAll('td.title a').length === 2`)
	l.run("append", "first", "more")
	until(t, tab, `[...document.querySelectorAll('tr')].some(r => r.textContent.includes('the first words') && r.querySelectorAll('td')[5]?.textContent === '2')`)
	t.Logf("2 events of other processes in %v", time.Since(start))
	if !value(t, tab, chromedp.Evaluate[bool](`window.same === 1 && document.activeElement.textContent === 'the first words' && document.querySelectorAll('.live').length === 2`)) {
		t.Error("the page was loaded again, the focus is lost, or a growing session has no dot")
	}
	l.run("rm", "second")
	until(t, tab, `document.querySelectorAll('td.title a').length === 1`)
}

// The conversation of a sub-agent opens in its place. It does not change where the page is.
func TestSubAgentInPlace(t *testing.T) {
	l := newLogtool(t)
	l.run("import", "../../testdata/transcripts/samples")
	url := l.serve()
	tab := newBrowser(t)
	base, _, _ := strings.Cut(url, "/?")
	run(t, tab, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`.logo`)), chromedp.Navigate(base+"/s/3f0c6a52-91d4-4b8e-a7c3-5e2d10b94f67"))
	until(t, tab, `document.querySelector('details.child') !== null`)
	run(t, tab, chromedp.Evaluate[chromedp.Void](`document.querySelector('details.child').open = true; 0`))
	until(t, tab, `document.querySelectorAll('details.child .entry').length > 2`)
	if n := value(t, tab, chromedp.Evaluate[int](`document.querySelectorAll('details.child [id], details.child [data-last]').length`)); n != 0 {
		t.Errorf("%d elements of the sub-agent have the address of an event of its parent", n)
	}
	for _, width := range []int64{360, 1280} {
		look(t, tab, width, "light")
		if over := value(t, tab, chromedp.Evaluate[int](`document.documentElement.scrollWidth - innerWidth`)); over > 0 {
			t.Errorf("the page scrolls sideways by %d", over)
		}
		run(t, tab, chromedp.Evaluate[chromedp.Void](`document.querySelector('details.child').scrollIntoView(); 0`))
		screenshot(t, tab, fmt.Sprintf("sub-agent-%d", width))
	}
}

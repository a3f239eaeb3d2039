//go:build browser

package browser

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// program is a server that the test kills and starts again.
type program struct {
	t         *testing.T
	path, dir string
	address   string
	cmd       *exec.Cmd
}

func build(t *testing.T, dir string) *program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // the address stays the same after a kill
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &program{t: t, path: path, dir: t.TempDir(), address: l.Addr().String()}
}

// start starts the server, and returns when it listens.
func (p *program) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.path, p.dir, p.address)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.kill)
	if lines := bufio.NewScanner(out); !lines.Scan() {
		p.t.Fatal("the server ended")
	}
}

func (p *program) kill() {
	_ = p.cmd.Process.Kill() // it may have been killed before
	_ = p.cmd.Wait()
}

// newBrowser begins a browser. Its tabs are contexts of chromedp.NewContext below it.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.ExecPath("chromium"))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	return ctx
}

// until runs an expression in a tab until it is true.
func until(t *testing.T, tab context.Context, expression string) {
	t.Helper()
	if _, err := chromedp.Run(tab, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(time.Minute))); err != nil {
		text, _ := chromedp.Run(tab, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("%s: %v; the page has %q", expression, err, text)
	}
}

func run(t *testing.T, tab context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab, actions...); err != nil {
		t.Fatal(err)
	}
}

// value is the value of an action.
func value[T any](t *testing.T, tab context.Context, action chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(tab, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// screenshot saves a picture of a tab if CONVLOG_SCREENSHOTS names a folder.
func screenshot(t *testing.T, tab context.Context, name string) {
	t.Helper()
	dir := os.Getenv("CONVLOG_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture := value(t, tab, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A page shows a turn while it streams, after a reload, in a second tab, and after a kill of
// the server. A person approves a review on it.
func TestChatPage(t *testing.T) {
	p := build(t, "../../examples/chatpage")
	p.start()
	tab := newBrowser(t)
	url := "http://" + p.address + "/#order-42"
	words := strings.Repeat("please be patient ", 8)
	run(t, tab, chromedp.Navigate(url), chromedp.WaitVisible(chromedp.CSS(`input`)),
		chromedp.SendKeys(chromedp.CSS(`input`), words+"and refund A1 "), chromedp.Click(chromedp.CSS(`form button`)))
	until(t, tab, `document.querySelector('.assistant')?.textContent.includes('patient please')`) // it streams
	run(t, tab, chromedp.Reload())
	second, cancel := chromedp.NewContext(tab)
	defer cancel()
	run(t, second, chromedp.Navigate(url))
	for _, tab := range []context.Context{tab, second} {
		until(t, tab, `document.querySelector('.assistant')?.textContent.includes('patient')`)
	}
	p.kill() // in the middle of the answer
	p.start()
	for _, tab := range []context.Context{tab, second} {
		until(t, tab, `document.querySelector('#reviews button')?.textContent.includes('"order":"A1"')`)
	}
	screenshot(t, tab, "chatpage-review")
	p.kill()
	p.start()
	run(t, second, chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS(`#reviews button`)), chromedp.Click(chromedp.CSS(`#reviews button`)))
	for _, tab := range []context.Context{tab, second} {
		until(t, tab, `[...document.querySelectorAll('.assistant')].at(-1)?.textContent === 'The order is paid back.' && document.querySelector('#status').textContent === 'finished'`)
		articles := value(t, tab, chromedp.Evaluate[[]string](`[...document.querySelectorAll('article')].map((a) => a.className + ': ' + a.textContent)`))
		want := []string{"user: " + words + "and refund A1 ", "assistant: You said: " + words + "and refund A1 \nrefund {\"order\":\"A1\"}", "tool: paid back", "assistant: The order is paid back."}
		if fmt.Sprint(articles) != fmt.Sprint(want) {
			t.Errorf("the page has %q, want %q", articles, want)
		}
	}
	screenshot(t, second, "chatpage-end")
}

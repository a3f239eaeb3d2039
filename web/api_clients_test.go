package web_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/web"
)

// restarting is a server that ends and starts again at the same address, over a store in a folder.
type restarting struct {
	t       *testing.T
	dir     string
	address string
	log     *eventlog.Log
	server  *http.Server
}

const fixedToken = "a-token-of-a-test-with-32-characters"

func newRestarting(t *testing.T) *restarting {
	x := &restarting{t: t, dir: t.TempDir(), address: "127.0.0.1:0"}
	x.start()
	t.Cleanup(x.end)
	return x
}

func (x *restarting) start() {
	x.t.Helper()
	x.log = eventlog.Open(jsonl.New(x.dir))
	h, err := web.New(x.log, web.Options{Write: true, Token: fixedToken})
	if err != nil {
		x.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", x.address)
	if err != nil {
		x.t.Fatal(err)
	}
	x.address = listener.Addr().String()
	x.server = &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = x.server.Serve(listener) }() // until end
}

func (x *restarting) end() {
	_ = x.server.Close() // its streams break
	_ = x.log.Close()
}

// example is a block of code of docs/guide/api.md, by its language and its number.
func example(t *testing.T, language string, n int) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "guide", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "\n```"+language+"\n")
	if len(blocks) <= n {
		t.Fatalf("the page has %d blocks of %s", len(blocks)-1, language)
	}
	text, _, _ := strings.Cut(blocks[n], "\n```")
	return text
}

// program runs a program of the page until the test ends, and yields its lines.
func (x *restarting) program(name string, args ...string) (next func() string) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 4*time.Minute) // ends a hang
	x.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LOGTOOL_URL=http://"+x.address+"/api/v1", "CONVLOG_SERVE_TOKEN="+fixedToken, "no_proxy=*")
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
	})
	lines := bufio.NewScanner(out)
	return func() string {
		x.t.Helper()
		if !lines.Scan() {
			cancel()
			_ = cmd.Wait() // for its messages
			x.t.Fatalf("the program ends: %s", failed.String())
		}
		return lines.Text()
	}
}

// follows checks what the programs of the page print: they lose a race, fork, and follow the session over restarts
// of the server, each event once.
func (x *restarting) follows(next func() string) {
	x.t.Helper()
	for _, want := range []string{"lost the race: conflict", "new: It has the number A1.", "forked order-42-again at 1", "followed 1 ", "followed 2 ", "followed 3 "} {
		if got := next(); !strings.HasPrefix(got, want) {
			x.t.Fatalf("the program prints %q, not %q", got, want)
		}
	}
	for seq := 4; seq < 40; seq++ {
		switch seq % 9 {
		case 0:
			x.end()
			x.start()
		case 5: // the next event is stored while the server is down
			x.end()
			other := eventlog.Open(jsonl.New(x.dir))
			if _, err := other.Append(x.t.Context(), "order-42", eventlog.Any(), event.UserMessage("down")); err != nil {
				x.t.Fatal(err)
			}
			_ = other.Close()
			x.start()
			if got, want := next(), fmt.Sprintf("followed %d ", seq); !strings.HasPrefix(got, want) {
				x.t.Fatalf("the program prints %q, not %q", got, want)
			}
			continue
		}
		if _, err := x.log.Append(x.t.Context(), "order-42", eventlog.Any(), event.UserMessage("more")); err != nil {
			x.t.Fatal(err)
		}
		if got, want := next(), fmt.Sprintf("followed %d ", seq); !strings.HasPrefix(got, want) {
			x.t.Fatalf("the program prints %q, not %q", got, want)
		}
	}
}

// The program of the page runs with Python.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return // there is no Python
	}
	x := newRestarting(t)
	x.follows(x.program(python, filepath.Join("..", "examples", "api", "parcel.py")))
}

// The commands of the page run with curl.
func TestCurl(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		return // there is no curl
	}
	x := newRestarting(t)
	next := x.program("sh", "-ec", example(t, "sh", 2))
	for _, want := range []string{`"seq":1`, `"seq":2`, `"status":412`} {
		got := next()
		if !strings.Contains(got, want) {
			t.Fatalf("curl prints %s, not %s", got, want)
		}
		if want == `"status":412` && !strings.Contains(got, `"parts":[{"type":"text","text":"It has the number A1."}]`) {
			t.Errorf("curl prints %s", got)
		}
	}
	if got := next(); !strings.Contains(got, `"session":"parcel-2"`) {
		t.Errorf("curl prints %s", got)
	}
	next = x.program("sh", "-ec", "exec "+example(t, "sh", 3)) // the test ends curl
	for got := next(); got != "id: 2"; got = next() {
	}
}

package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
	"github.com/convlog/convlog/web"
)

// note is the type of the events of writer.
const note event.Type = "py:note"

// writer appends numbered events to sessions from several threads, every second one with If-Match, and
// repeats what fails.
const writer = `
import concurrent.futures, http.client, json, os, secrets, sys, time, urllib.parse
url, token = urllib.parse.urlsplit(os.environ["LOGTOOL_URL"]), os.environ["CONVLOG_SERVE_TOKEN"]
sessions, count = int(sys.argv[1]), int(sys.argv[2])

def ulid():
    number = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[number >> shift & 31] for shift in range(125, -1, -5))

def write(session):
    lost, head, connection = 0, None, http.client.HTTPConnection(url.netloc, timeout=60)
    for n in range(count):
        body = json.dumps({"events": [{"id": ulid(), "type": "py:note", "data": {"n": n}}]})
        while True:
            headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
            if head and n % 2:
                headers["If-Match"] = f'"{head["seq"]}:{head["hash"]}"'
            connection.request("POST", f"{url.path}/sessions/s{session}/events", body, headers)
            answer = connection.getresponse()
            value = json.load(answer)
            if answer.status == 412:
                lost, head = lost + 1, value
            elif answer.status == 503:
                time.sleep(0.01)
            elif answer.status == 200:
                head = value
                break
            else:
                sys.exit(f"{answer.status} {value}")
    return lost

with concurrent.futures.ThreadPoolExecutor(12) as pool:
    print("lost", sum(pool.map(write, range(sessions))), flush=True)
`

// A program in Python appends to sessions while agents run turns in them, over another log of the store:
// nothing is lost, stored twice or out of order.
func TestWritersInTwoLanguages(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return // there is no Python
	}
	sessions, count, turns := testsize.Pick(4, 10, 100), testsize.Pick(10, 20, 100), testsize.Pick(2, 5, 20)
	x := newRestarting(t)
	next := x.program(python, "-c", writer, strconv.Itoa(sessions), strconv.Itoa(count))
	log := eventlog.Open(jsonl.New(x.dir))
	defer log.Close()
	failed := make(chan error, sessions)
	for i := range sessions {
		go func() { failed <- runTurns(t.Context(), log, fmt.Sprint("s", i), turns, count/turns) }()
	}
	lost, all := next(), 0
	for range sessions {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	for i := range sessions {
		all += x.checkSession(log, fmt.Sprint("s", i), count, turns)
	}
	t.Logf("%d events of Python (%s races), %d turns of agents, %d events", sessions*count, lost, sessions*turns, all)
}

// runTurns runs turns in a session, one after each so many notes of the program.
func runTurns(ctx context.Context, log *eventlog.Log, session string, turns, each int) error {
	notes, turn := 0, 0
	for e, err := range log.Watch(ctx, session, 1, eventlog.WatchOptions{Wait: true}) {
		if err == nil && e.Type == note && notes == turn*each {
			err = runTurn(ctx, log, session, turn)
			turn++
		}
		if err != nil {
			return fmt.Errorf("session %s, turn %d: %w", session, turn, err)
		}
		if e.Type == note {
			notes++
		}
		if turn == turns {
			return nil
		}
	}
	return nil
}

// runTurn runs a turn of an agent that uses a tool.
func runTurn(ctx context.Context, log *eventlog.Log, session string, n int) error {
	look := flow.Tool("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	model := flowtest.Script{flowtest.Say("", event.ToolCall(fmt.Sprint("call-", n), "look", []byte(`{}`))), flowtest.Say("done")}
	agent := &flow.Agent[struct{}]{Name: "looks", Log: log, Turn: flow.Chat[struct{}](model, flow.Request{}, look)}
	out, err := agent.Run(ctx, session, flow.Input{ID: fmt.Sprint("input-", n), Messages: flow.Text("look").Messages})
	if err == nil && out.Text() != "done" {
		err = fmt.Errorf("the answer is %q", out.Text())
	}
	return err
}

// checkSession checks the notes and the turns of a session, and returns the number of its events.
func (x *restarting) checkSession(log *eventlog.Log, session string, count, turns int) (events int) {
	x.t.Helper()
	n, results, answers := 0, 0, 0
	for e, err := range log.Read(x.t.Context(), session, eventlog.All()) {
		if err != nil {
			x.t.Fatal(err)
		}
		events++
		if e.Type == note {
			if string(e.Data) != fmt.Sprintf(`{"n":%d}`, n) {
				x.t.Fatalf("%s: event %d is %s, want note %d", session, e.Seq, e.Data, n)
			}
			n++
		}
		if m, ok, _ := event.Decode[event.Message](&e); ok && m.Role == event.Tool {
			results++
		} else if ok && m.Role == event.Assistant && m.Text() == "done" {
			answers++
		}
	}
	if n != count || results != turns || answers != turns {
		x.t.Errorf("%s: %d notes, want %d; %d results and %d answers, want %d", session, n, count, results, answers, turns)
	}
	if report, err := verify.Session(x.t.Context(), log, session); err != nil || report.Damaged() > 0 {
		x.t.Errorf("%s: %v %v", session, report.Defects, err)
	}
	return events
}

// Many more requests than the server answers at a time are answered or refused, and the memory does not
// grow with their number.
func TestFlood(t *testing.T) {
	s := newSite(t, web.Options{Write: true})
	s.add("s", event.UserMessage(strings.Repeat("many words ", 1000)))
	requests := testsize.Pick(500, 2000, 10_000)
	peak := func() uint64 { // of the heap so far
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapSys
	}
	first := s.flood(requests / 4)
	before := peak()
	counts := s.flood(requests)
	after := peak()
	if after > 2*before {
		t.Errorf("the heap grows from %d to %d bytes", before, after)
	}
	for _, c := range []map[int]int{first, counts} {
		for status := range c {
			if status != http.StatusOK && status != http.StatusServiceUnavailable {
				t.Errorf("status %d, %d times", status, c[status])
			}
		}
	}
	if counts[http.StatusOK] == 0 || s.get("/sessions/s").status != http.StatusOK {
		t.Errorf("the answers are %v", counts)
	}
	t.Logf("%d requests: %v; the heap has %d and %d bytes", requests, counts, before, after)
}

// flood sends requests on connections without a wait for the answers, and counts the statuses.
func (s *site) flood(requests int) map[int]int {
	s.t.Helper()
	const connections = 500
	var mu sync.Mutex
	counts := map[int]int{}
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				s.t.Error(err)
				return
			}
			defer c.Close()
			n := max(1, requests/connections)
			for range n {
				fmt.Fprintf(c, "GET /api/v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", s.token)
			}
			in := bufio.NewReader(c)
			for range n {
				answer, err := http.ReadResponse(in, nil)
				if err != nil {
					s.t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body) // counted by its status
				mu.Lock()
				counts[answer.StatusCode]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return counts
}

// Clients that vanish in the middle of a request or of a stream leave nothing behind.
func TestVanishedClients(t *testing.T) {
	s := newSite(t, web.Options{Write: true})
	s.add("s", event.UserMessage("x"))
	for i := range 200 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		path, more := "GET /api/v1/sessions/s/live", "\r\n"
		switch i % 3 {
		case 1:
			path = "GET /api/v1/live"
		case 2:
			path, more = "POST /api/v1/sessions/s/events", "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"events\":["
		}
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s", path, s.token, more)
		if i%2 == 0 && i%3 < 2 {
			_, _ = c.Read(make([]byte, 100)) // the stream has begun
		}
		_ = c.Close()
	}
	for free := 0; free < 64; { // until there is a place for each stream again
		r := s.request("GET", "/api/v1/sessions/s/live", "Authorization", "Bearer "+s.token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK {
			_ = answer.Body.Close()
			continue
		}
		free++
		t.Cleanup(func() { _ = answer.Body.Close() })
	}
	if events := s.rowsOf("/sessions/s/events", "events", "after"); len(events) != 1 {
		t.Errorf("%d events", len(events))
	}
}

//go:build npm

package flowhttp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/store/jsonl"
)

// cutting returns two servers over one store, and the address of a proxy that gives each
// request to one of them, and cuts the connection after a random number of bytes of an answer,
// at most n times.
func cutting(t *testing.T, n int) (*server, string) {
	t.Helper()
	dir := t.TempDir()
	servers := []*server{serve(t, jsonl.New(dir), chat{}, options{}), serve(t, jsonl.New(dir), chat{}, options{})}
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	left := n
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		u, err := url.Parse(servers[random.IntN(2)].URL)
		if err != nil {
			t.Error(err)
		}
		if left > 0 {
			left--
			w = &cut{ResponseWriter: w, left: random.IntN(500)}
		}
		mu.Unlock()
		proxy := httputil.NewSingleHostReverseProxy(u)
		proxy.FlushInterval, proxy.ErrorLog = -1, log.New(io.Discard, "", 0)
		r.Host = u.Host
		defer func() {
			if x := recover(); x != nil {
				panic(http.ErrAbortHandler)
			}
		}()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return servers[0], front.URL
}

// cut is an answer whose connection breaks.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cut) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left >= 0 {
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:len(b)+c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}

// node runs a script of testdata/clients, and decodes what it prints.
func node(t *testing.T, v any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = "testdata/clients"
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, &out, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), v); err != nil {
		t.Fatalf("%s: %v", &out, err)
	}
}

var inputs = []string{strings.Repeat("Good morning, how are you today? ", 10), "please pay the bill" + strings.Repeat(", and say it again in words", 10), "thanks"}

// The messages of the AI SDK's client equal the log's, however often its stream is cut.
func TestAISDK(t *testing.T) {
	for _, cuts := range []int{0, 100} {
		s, url := cutting(t, cuts)
		var got struct {
			Cuts     int
			Messages []map[string]any
		}
		node(t, &got, append([]string{"aisdk.mjs", url, "a"}, inputs...)...)
		var want struct{ Messages []map[string]any }
		raw, _ := json.Marshal(s.call("GET", "/ai-sdk/a/messages", "", 200))
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		normal(got.Messages)
		normal(want.Messages)
		if !reflect.DeepEqual(got.Messages, want.Messages) {
			g, _ := json.MarshalIndent(got.Messages, "", " ")
			w, _ := json.MarshalIndent(want.Messages, "", " ")
			t.Errorf("%d cuts: got %s\nwant %s", got.Cuts, g, w)
		}
		t.Logf("%d messages, %d cuts", len(got.Messages), got.Cuts)
		if cuts > 0 && got.Cuts == 0 {
			t.Error("no stream was cut")
		}
	}
}

// normal removes what the client adds to a message: the answer that it sent.
func normal(messages []map[string]any) {
	for _, m := range messages {
		for _, p := range m["parts"].([]any) {
			p := p.(map[string]any)
			if a, ok := p["approval"].(map[string]any); ok {
				delete(a, "approved")
			}
		}
	}
}

// The messages of AG-UI's client equal the log's, however often its stream is cut.
func TestAGUI(t *testing.T) {
	for _, cuts := range []int{0, 100} {
		s, url := cutting(t, cuts)
		var got struct {
			Cuts     int
			Messages []map[string]any
			State    map[string]any
		}
		node(t, &got, append([]string{"agui.mjs", url, "a"}, inputs...)...)
		state := s.call("GET", "/sessions/a", "", 200)
		if !reflect.DeepEqual(got.State, state["state"]) {
			t.Errorf("state %v, want %v", got.State, state["state"])
		}
		var texts, want []string
		for _, m := range got.Messages {
			if text, ok := m["content"].(string); ok && m["role"] != "reasoning" {
				texts = append(texts, m["role"].(string)+": "+text)
			}
		}
		for _, m := range state["messages"].([]any) {
			m := m.(map[string]any)
			for _, p := range m["parts"].([]any) {
				p := p.(map[string]any)
				if p["type"] == "text" {
					want = append(want, m["role"].(string)+": "+p["text"].(string))
				}
				if p["type"] == "tool_result" {
					want = append(want, "tool: "+p["content"].([]any)[0].(map[string]any)["text"].(string))
				}
			}
		}
		if !reflect.DeepEqual(texts, want) {
			t.Errorf("%d cuts: got %q\nwant %q", got.Cuts, texts, want)
		}
		t.Logf("%d messages, %d cuts", len(got.Messages), got.Cuts)
		if cuts > 0 && got.Cuts == 0 {
			t.Error("no stream was cut")
		}
	}
}

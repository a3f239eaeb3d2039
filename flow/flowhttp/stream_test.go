package flowhttp_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/erase"
)

// A viewer whose stream is cut at random places, over two processes, gets each event once and
// in order, and the pieces of a message fit together.
func TestCutStreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pace := make(chan struct{})
	go func() {
		for t.Context().Err() == nil {
			select {
			case pace <- struct{}{}:
				time.Sleep(time.Millisecond) // the viewers are cut meanwhile
			case <-t.Context().Done():
			}
		}
	}()
	servers := []*server{serve(t, jsonl.New(dir), chat{pace}, options{}), serve(t, jsonl.New(dir), chat{pace}, options{})}
	body := fmt.Sprintf(`{"text":%q}`, strings.Repeat("all work and no play ", 10))
	random := rand.New(rand.NewPCG(1, 2))
	last, cuts, ended := "", 0, true
	next := map[string]int{} // the length of the messages that grow in a stream
	var seqs []string
	for ; cuts < testsize.Pick(20, 40, 100) || !ended; cuts++ {
		if ended {
			ended = false
			servers[0].call("POST", "/sessions/a/inputs", body, 202)
		}
		left := random.IntN(12)
		clear(next)
		servers[random.IntN(2)].follow("a", last, func(f frame) bool {
			if f.event == "delta" {
				key := fmt.Sprint(f.data["message"], f.data["part"])
				at := int(f.data["offset"].(float64))
				if want, ok := next[key]; f.id != "" || ok && at != want {
					t.Errorf("piece %v, want it at %d", f, want)
				}
				next[key] = at + len(f.data["text"].(string))
			} else {
				last = f.id
				seqs = append(seqs, f.id)
				ended = f.data["type"] == "run_released"
			}
			left--
			return left > 0 && !ended
		})
	}
	for i, id := range seqs {
		if id != fmt.Sprint(i+1) {
			t.Fatalf("event %d has the id %s: %v", i+1, id, seqs)
		}
	}
	t.Logf("%d events, %d cuts", len(seqs), cuts)
}

// A viewer that saw a step begin gets each piece of its message, at its place.
func TestPiecesMakeTheMessage(t *testing.T) {
	t.Parallel()
	pace := make(chan struct{})
	s := newServer(t, chat{pace}, options{})
	s.call("POST", "/sessions/a/inputs", `{"text":"one two three"}`, 202)
	pieces, words := "", 0
	s.follow("a", "", func(f frame) bool {
		text := f.event == "delta" && f.data["kind"] == "text"
		if text {
			if at := int(f.data["offset"].(float64)); at != len(pieces) {
				t.Errorf("a piece at %d, want it at %d", at, len(pieces))
			}
			pieces += f.data["text"].(string)
			words++
		}
		if text && words < 5 || f.data["type"] == "step_started" {
			pace <- struct{}{} // the next word
		}
		if f.data["type"] == "message_added" && f.data["data"].(map[string]any)["role"] == "assistant" {
			// The message may overtake its last piece, which is then left out.
			if words < 4 || !strings.HasPrefix("You said: one two three", pieces) {
				t.Errorf("pieces: %q", pieces)
			}
			return false
		}
		return true
	})
}

// A stream ends with a problem when its session is removed.
func TestStreamOfARemovedSession(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{})
	s.call("POST", "/sessions/a/inputs", `{"text":"hello"}`, 202)
	var end frame
	s.follow("a", "", func(f frame) bool {
		if f.data["type"] == "run_released" {
			if err := erase.Remove(t.Context(), s.log, "a"); err != nil {
				t.Fatal(err)
			}
		}
		end = f
		return true
	})
	if end.event != "problem" || end.data["status"] != 404.0 {
		t.Errorf("the stream ends with %v", end)
	}
}

// Requests that are refused, each with a problem document.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{MaxInput: 300})
	s.call("POST", "/sessions/a/inputs", `{"text":"please pay"}`, 202)
	s.follow("a", "", func(f frame) bool { return f.data["type"] != "turn_hibernated" })
	for _, x := range []struct {
		method, path, body string
		status             int
		detail             string
	}{
		{"POST", "/sessions/a/inputs", `{"text":"` + strings.Repeat("x", 300) + `"}`, 413, "longer than 300 bytes"},
		{"POST", "/sessions/a/inputs", `{}`, 422, "no text"},
		{"POST", "/sessions/a/inputs", `{"text":"a","messages":[{"role":"user"}]}`, 422, "or both"},
		{"POST", "/sessions/a/inputs", `{"texts":"a"}`, 400, "texts"},
		{"POST", "/sessions/a/inputs", `{"messages":[{"role":"system","parts":[]}]}`, 422, `"system"`},
		{"POST", "/sessions/a/inputs", `{"messages":[{"role":"user","parts":[{"type":"opaque"}]}]}`, 422, `"opaque"`},
		{"POST", "/sessions/a/inputs", `{"messages":[{"role":"user","parts":[{"type":"image","blob":{"blob":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","bytes":1}}]}]}`, 422, "names a blob"},
		{"POST", "/sessions/a/inputs", `{`, 400, "cannot be read"},
		{"GET", "/sessions/none", "", 404, "none"},
		{"GET", "/sessions/none/events", "", 404, "none"},
		{"GET", "/sessions/a/events?after=x", "", 400, `"x"`},
		{"GET", "/sessions/a/events?after=1000", "", 409, "another one"},
		{"POST", "/sessions/a/answers", `{"interrupt_id":"other","decision":"approved"}`, 409, `"other"`},
		{"POST", "/sessions/a/answers", `{"interrupt_id":"other","decision":"maybe"}`, 422, `"maybe"`},
		{"POST", "/sessions/none/answers", `{"interrupt_id":"x","decision":"denied"}`, 404, "none"},
		{"POST", "/sessions/none/abort", `{}`, 404, "none"},
		{"GET", "/sessions/a/snapshots/none", "", 404, "none"},
		{"GET", "/sessions/none/snapshots", "", 404, "none"},
		{"POST", "/ai-sdk", `{"id":"a","messages":[]}`, 422, "no message"},
		{"POST", "/ai-sdk", `{"id":"a","messages":[{"id":"1","role":"assistant","parts":[]}]}`, 422, "assistant"},
		{"POST", "/ag-ui", `{"threadId":"a"}`, 422, "runId"},
	} {
		if got := s.call(x.method, x.path, x.body, x.status); !strings.Contains(got["detail"].(string), x.detail) || got["remedy"] == nil {
			t.Errorf("%s %s: %v", x.method, x.path, got)
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/sessions/a/inputs", strings.NewReader(`{"text":"a"}`))
	s.status(r, 415)
	r, _ = http.NewRequestWithContext(t.Context(), "GET", s.URL+"/sessions/a", nil)
	r.Host = "evil.example"
	s.status(r, 403)
	r, _ = http.NewRequestWithContext(t.Context(), "POST", s.URL+"/sessions/a/inputs", strings.NewReader(`{"text":"a"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", "https://evil.example")
	s.status(r, 403)
}

func (s *server) status(r *http.Request, want int) {
	s.t.Helper()
	answer, err := s.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != want {
		s.t.Errorf("%s %s: status %d, want %d", r.Method, r.URL, answer.StatusCode, want)
	}
}

// Options.Authorize decides for each session, and its name is recorded.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	s := newServer(t, chat{}, options{Authorize: func(r *http.Request, session string) (string, error) {
		if name := r.Header.Get("User"); name != "" || session == "" || session == "open" {
			return name, nil
		}
		return "", fmt.Errorf("log in first")
	}})
	s.call("POST", "/sessions/open/inputs", `{"text":"pay"}`, 202)
	s.follow("open", "", func(f frame) bool { return f.data["type"] != "turn_hibernated" })
	got := s.call("POST", "/sessions/a/inputs", `{"text":"pay"}`, 403)
	if got["detail"] != "log in first" {
		t.Errorf("%v", got)
	}
	reviews := s.call("GET", "/approvals", "", 200)["reviews"].([]any)
	if len(reviews) != 1 {
		t.Fatalf("%v", reviews)
	}
	id := reviews[0].(map[string]any)["interrupt_id"].(string)
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/sessions/open/answers", strings.NewReader(fmt.Sprintf(`{"interrupt_id":%q,"decision":"denied","reason":"too dear"}`, id)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User", "ada")
	s.status(r, 200)
	for e, err := range s.log.Read(t.Context(), "open", eventlog.All().Backward()) {
		a, ok, _ := event.Decode[event.ApprovalResolution](&e)
		if err != nil || ok && (a.By != "ada" || a.Reason != "too dear") {
			t.Fatal(err, a)
		}
		if ok {
			break
		}
	}
}

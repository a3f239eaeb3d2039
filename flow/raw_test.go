package flow_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/capture"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

const rawKey = "sk-very-secret"

// sendBody sends a body to a server through a transport, and returns the answer.
func sendBody(ctx context.Context, tr *capture.Transport, url, body string) (string, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	q.Header.Set("Authorization", "Bearer "+rawKey)
	r, err := (&http.Client{Transport: tr}).Do(q)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	return string(text), err
}

// captured is a transport that remembers its calls.
func captured(max int) (*capture.Transport, *[]capture.Call) {
	calls := new([]capture.Call)
	return &capture.Transport{Max: max, Capture: func(_ context.Context, c capture.Call) { *calls = append(*calls, c) }}, calls
}

func TestRawTransportBounds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(bytes.ToUpper(text))
	}))
	defer server.Close()
	for _, c := range []struct {
		max       int
		request   string
		kept      int
		truncated bool
	}{{0, "hello", 5, false}, {5, "hello", 5, false}, {4, "hello", 4, true}, {1000, strings.Repeat("x", 100_000), 1000, true}} {
		tr, calls := captured(c.max)
		answer, err := sendBody(t.Context(), tr, server.URL, c.request)
		if err != nil || answer != strings.ToUpper(c.request) || len(*calls) != 1 {
			t.Fatalf("answer of %d bytes, %v, %d calls", len(answer), err, len(*calls))
		}
		want := capture.Call{Status: http.StatusTeapot,
			Request:  capture.Body{Kept: []byte(c.request[:c.kept]), Bytes: int64(len(c.request)), Truncated: c.truncated},
			Response: capture.Body{Kept: []byte(answer[:c.kept]), Bytes: int64(len(answer)), Truncated: c.truncated}}
		if got := (*calls)[0]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got  %.80v\nwant %.80v", got, want)
		}
	}
}

// The first piece of a stream reaches the caller before the server sends the second. A
// stream that is closed early is captured up to there, once.
func TestRawTransportStreams(t *testing.T) {
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, piece := range []string{"data: one\n\n", "data: two\n\n", "data: three\n\n"} {
			_, _ = io.WriteString(w, piece)
			w.(http.Flusher).Flush()
			<-next
		}
	}))
	defer server.Close()
	defer close(next)
	tr, calls := captured(0)
	r, err := (&http.Client{Transport: tr}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"data: one\n\n", "data: two\n\n"} {
		piece := make([]byte, len(want))
		if _, err := io.ReadFull(r.Body, piece); err != nil || string(piece) != want {
			t.Fatalf("%q, %v", piece, err)
		}
		next <- struct{}{}
	}
	if len(*calls) != 0 {
		t.Error("captured before the end")
	}
	_ = r.Body.Close()
	_ = r.Body.Close()
	if len(*calls) != 1 || !strings.HasPrefix(string((*calls)[0].Response.Kept), "data: one\n\ndata: two\n\n") || (*calls)[0].Request.Bytes != 0 {
		t.Errorf("calls %v", *calls)
	}
}

func TestRawTransportHidesKeys(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the key "+rawKey+" is wrong", http.StatusUnauthorized)
	}))
	defer server.Close()
	tr, calls := captured(0)
	if _, err := sendBody(t.Context(), tr, server.URL+"/?key="+rawKey, "hello"); err != nil {
		t.Fatal(err)
	}
	if got := string((*calls)[0].Response.Kept); got != "the key [key] is wrong\n" {
		t.Errorf("response %q", got)
	}
}

// roundTrip is an http.RoundTripper that is a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// A transport may send a request twice; only the last one is captured. A request without a
// response is captured too.
func TestRawTransportOfFailedRequests(t *testing.T) {
	refused := errors.New("refused")
	tr, calls := captured(0)
	tr.Base = roundTrip(func(q *http.Request) (*http.Response, error) {
		_, _ = io.CopyN(io.Discard, q.Body, 3)
		body, err := q.GetBody()
		if err != nil {
			return nil, err
		}
		_, err = io.CopyN(io.Discard, body, 4)
		return nil, errors.Join(err, refused)
	})
	if _, err := sendBody(t.Context(), tr, "http://localhost", "hello"); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if len(*calls) != 1 || string((*calls)[0].Request.Kept) != "hell" || (*calls)[0].Status != 0 {
		t.Errorf("calls %v", *calls)
	}
}

// The bodies of all attempts are events of their own. After they were erased, the turn
// continues from its records.
func TestRawBodiesOfAModel(t *testing.T) {
	attempts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if attempts++; attempts == 1 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "raw answer")
	}))
	defer server.Close()
	model := modelFunc(func(ctx context.Context, _ *flow.Request, _ func(eventlog.Delta)) (flow.Response, error) {
		text, err := sendBody(ctx, &capture.Transport{}, server.URL, "raw request")
		if err == nil && text != "raw answer" {
			err = errors.New(text)
		}
		return flow.Response{Message: event.Message{Provider: "p", Model: "m", Usage: event.Usage{OutputTokens: 3}, Parts: []event.Part{event.Text(text)}}}, err
	})
	log := eventlog.Open(memory.New())
	defer log.Close()
	agent := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, turn *flow.Turn[notes]) error {
		if _, err := turn.Model(ctx, model, flow.Request{Model: "m"}); err != nil {
			return err
		}
		_, err := flow.Do(ctx, turn, flow.Effect{Name: "pay", Review: &flow.Question{Prompt: "Pay?"}}, func(context.Context) (int, error) { return 1, nil })
		return err
	}, Options: flow.Options{Retry: flow.Retry{Attempts: 2, First: time.Millisecond}}}
	var asleep *flow.Hibernated
	if _, err := agent.Run(t.Context(), "s", flow.Text("hello")); !errors.As(err, &asleep) {
		t.Fatal(err)
	}
	want := []string{"raw_request 11 raw request", "raw_response 5 busy\n", "raw_request 11 raw request", "raw_response 10 raw answer"}
	if got := bodies(t, log); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("bodies %q", got)
	}
	done, err := erase.Raw(t.Context(), log, time.Time{}, nil)
	if err != nil || len(done.Erased) != 4 || len(done.Blobs) != 3 {
		t.Errorf("erased %+v, %v", done, err)
	}
	if got := bodies(t, log); len(got) > 0 {
		t.Errorf("bodies %q", got)
	}
	if _, err := flow.Decide(t.Context(), log, "s", answerTo(asleep.Reviews[0], event.Approved)); err != nil {
		t.Fatal(err)
	}
	conn, err := connect(t.Context(), agent, "s")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := conn.Output(t.Context()); err != nil || out.Status != flow.StatusFinished || attempts != 2 {
		t.Errorf("%+v, %v, %d attempts", out, err, attempts)
	}
	report, err := verify.Session(t.Context(), log, "s")
	if err != nil || len(report.Defects) > 0 {
		t.Errorf("%v, %v", report.Defects, err)
	}
}

// A body that the log refuses is an event without it, and the effect succeeds.
func TestARawBodyThatIsRefused(t *testing.T) {
	log := eventlog.Open(memory.New(), eventlog.Options{BodyHook: func(context.Context, io.Reader) (io.Reader, error) {
		return nil, errors.New("no bodies")
	}})
	defer log.Close()
	call := capture.Call{Request: capture.Body{Kept: []byte("hello"), Bytes: 5}}
	if capture.Keep(t.Context(), call) {
		t.Error("a body outside an effect")
	}
	agent := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, turn *flow.Turn[notes]) error {
		_, err := flow.Do(ctx, turn, flow.Effect{Name: "ask"}, func(ctx context.Context) (bool, error) { return capture.Keep(ctx, call), nil })
		return err
	}}
	if out, err := agent.Run(t.Context(), "s", flow.Text("hello")); err != nil || out.Status != flow.StatusFinished {
		t.Fatalf("%+v, %v", out, err)
	}
	var texts []string
	for e, err := range log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		if op, ok, err := event.Decode[event.Op](&e); ok && err == nil && op.Body.IsZero() {
			texts = append(texts, op.Level+" "+op.Text)
		}
	}
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "error the body is not stored: ") || !strings.Contains(texts[0], "no bodies") {
		t.Errorf("events %q", texts)
	}
}

// bodies are the bodies in the log, with their kinds and lengths.
func bodies(t *testing.T, log *eventlog.Log) (list []string) {
	t.Helper()
	for e, err := range log.Read(t.Context(), "s", eventlog.All()) {
		if err != nil {
			t.Fatal(err)
		}
		op, ok, err := event.Decode[event.Op](&e)
		if !ok || err != nil {
			continue
		}
		body, err := log.OpenBlob(t.Context(), op.Body.Blob)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s %d %s", op.Kind, op.Body.Bytes, text))
	}
	return list
}

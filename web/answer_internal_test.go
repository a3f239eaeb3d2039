package web

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// deafClient is a client that reads nothing until it is told to, or cut off.
type deafClient struct {
	*httptest.ResponseRecorder
	writes  chan *deafClient
	release chan struct{}
	once    sync.Once
	cut     bool
}

func (c *deafClient) stop() { c.once.Do(func() { close(c.release) }) }

func (c *deafClient) Write(b []byte) (int, error) {
	c.writes <- c
	<-c.release
	if c.cut {
		return 0, errors.New("cut off")
	}
	return len(b), nil
}

func (c *deafClient) SetWriteDeadline(t time.Time) error {
	if !t.After(time.Now()) {
		c.cut = true
		c.stop()
	}
	return nil
}

// deafPages asks for a page for each of some clients that read nothing, and waits until all have the
// beginning of their answers.
func deafPages(t *testing.T, h *Handler, path string, n int) (clients []*deafClient, wait func()) {
	t.Helper()
	var all sync.WaitGroup
	writes := make(chan *deafClient, n)
	for range n {
		c := &deafClient{ResponseRecorder: httptest.NewRecorder(), writes: writes, release: make(chan struct{})}
		all.Go(func() { h.ServeHTTP(c, tokenRequest(t, h, path)) })
		clients = append(clients, <-writes) // with a place for each client, the next one would wait for ever
	}
	return clients, all.Wait
}

func tokenRequest(t *testing.T, h *Handler, path string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil)
	r.Header.Set("Authorization", "Bearer "+h.guard.token)
	r.Header.Set("Accept", "text/html")
	return r
}

// Clients that read nothing keep no place among the requests that work, and no lock.
func TestDeafClients(t *testing.T) {
	log := eventlog.Open(memory.New())
	if _, err := log.Append(t.Context(), "s", eventlog.New(), event.UserMessage("a question")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/s/s", "/s/s/entries", "/s/s/at/1", "/stats", "/none", "/api/v1/sessions", "/api/v1/stats", "/api/v1/sessions/s/cost"} {
		h, err := New(log)
		if err != nil {
			t.Fatal(err)
		}
		clients, wait := deafPages(t, h, path, 3*mostRequests)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, tokenRequest(t, h, "/"))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "a question") {
			t.Errorf("%s: the next page: %d", path, w.Code)
		}
		for _, c := range clients {
			c.stop()
		}
		wait()
	}
}

// If clients leave too many bytes unread, the oldest answers are cut off.
func TestUnreadBytesAreBounded(t *testing.T) {
	h, err := New(eventlog.Open(memory.New()))
	if err != nil {
		t.Fatal(err)
	}
	one := httptest.NewRecorder()
	h.ServeHTTP(one, tokenRequest(t, h, "/"))
	const fit, n = 5, 12
	h.unsent.most = fit*one.Body.Len() + one.Body.Len()/2
	clients, wait := deafPages(t, h, "/", n)
	if len(h.unsent.all) != fit || h.unsent.bytes > h.unsent.most {
		t.Errorf("%d answers with %d bytes are unsent", len(h.unsent.all), h.unsent.bytes)
	}
	for _, c := range clients {
		c.stop()
	}
	wait()
	for i, c := range clients {
		if c.cut != (i < n-fit) {
			t.Errorf("client %d is cut off: %v", i, c.cut)
		}
	}
	if len(h.unsent.all)+h.unsent.bytes+len(h.unsent.sizes) != 0 {
		t.Errorf("%d answers with %d bytes are left", len(h.unsent.all), h.unsent.bytes)
	}
}

// An error after a part of an answer is the whole answer.
func TestAnErrorReplacesAPart(t *testing.T) {
	for _, before := range []int{0, http.StatusOK} {
		w := httptest.NewRecorder()
		h := &Handler{unsent: unsent{most: mostUnsent}}
		h.work(w, func() {}, func(w http.ResponseWriter) {
			if before != 0 {
				w.WriteHeader(before)
			}
			_, _ = w.Write([]byte(`{"a part":`))
			refuse(w, errors.New("the disk is full"))
		})
		if w.Code < 400 || strings.Contains(w.Body.String(), "a part") || !strings.HasPrefix(w.Body.String(), "{") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	}
}

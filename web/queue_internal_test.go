package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
)

// A request is refused if too many wait already, and one whose client goes leaves its place in the queue.
func TestFullQueue(t *testing.T) {
	h, err := New(eventlog.Open(memory.New()))
	if err != nil {
		t.Fatal(err)
	}
	request := func(ctx context.Context) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(ctx, "GET", "http://localhost/api/v1/sessions", nil)
		r.Header.Set("Authorization", "Bearer "+h.guard.token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for range mostRequests {
		h.busy <- struct{}{}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 * mostWaiting {
		request(gone)
	}
	for range mostWaiting {
		h.waiting <- struct{}{}
	}
	w := request(t.Context())
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"remedy":"send the request again`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for range mostWaiting {
		<-h.waiting
	}
	for range mostRequests {
		<-h.busy
	}
	if w := request(t.Context()); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

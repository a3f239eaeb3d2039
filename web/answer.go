package web

import (
	"bytes"
	"cmp"
	"net/http"
	"sync"
	"time"
)

// answer collects the answer to a request that has a place among the requests that work. It is sent
// after the request has left its place, so that a client that reads slowly keeps no place.
type answer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

// WriteHeader sets the status. An error takes the place of what was written before it.
func (a *answer) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		a.body.Reset()
	} else if a.status != 0 {
		return
	}
	a.status = status
}

func (a *answer) Write(b []byte) (int, error)        { return a.body.Write(b) }
func (a *answer) SetWriteDeadline(t time.Time) error { return nil } // send sets it

// work makes the answer to a request that leaves its place then, and sends it.
func (h *Handler) work(w http.ResponseWriter, leave func(), f func(w http.ResponseWriter)) {
	a := &answer{ResponseWriter: w}
	func() {
		defer leave()
		f(a)
	}()
	h.unsent.send(a)
}

// mostUnsent bounds the bytes of the answers that clients have not read yet.
const mostUnsent = 16 << 20

// unsent are the answers that are sent. If they have too many bytes, the clients that have read for
// the longest time are cut off.
type unsent struct {
	most int

	mu    sync.Mutex
	bytes int
	all   []*http.ResponseController // the oldest first
	sizes map[*http.ResponseController]int
}

// send sends an answer.
func (u *unsent) send(a *answer) {
	c := http.NewResponseController(a.ResponseWriter)
	u.begin(c, a.body.Len())
	defer u.end(c)
	a.ResponseWriter.WriteHeader(cmp.Or(a.status, http.StatusOK))
	_, _ = a.ResponseWriter.Write(a.body.Bytes()) // the client has gone
}

func (u *unsent) begin(c *http.ResponseController, size int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sizes == nil {
		u.sizes = map[*http.ResponseController]int{}
	}
	u.bytes += size
	for u.bytes > u.most && len(u.all) > 0 {
		_ = u.all[0].SetWriteDeadline(time.Now()) // a recorder in a test has none
		u.remove(u.all[0])
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	u.all, u.sizes[c] = append(u.all, c), size
}

func (u *unsent) end(c *http.ResponseController) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remove(c)
}

// remove removes an answer that was sent, or whose client is cut off.
func (u *unsent) remove(c *http.ResponseController) {
	for i, x := range u.all {
		if x == c {
			u.all = append(u.all[:i], u.all[i+1:]...)
			u.bytes -= u.sizes[c]
			delete(u.sizes, c)
			return
		}
	}
}

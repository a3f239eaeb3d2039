package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The times of a stream.
const (
	// stall is how long a client may take to read a frame. Then it is disconnected.
	stall = 20 * time.Second
	// keepAlive is the time between two comments, which keep proxies from closing the
	// connection.
	keepAlive = 15 * time.Second
)

// Stream is an answer of server-sent events. Its methods may be called concurrently.
type Stream struct {
	mu      sync.Mutex
	w       http.ResponseWriter
	control *http.ResponseController
	stop    context.CancelFunc
	err     error // of the connection
}

// NewStream begins the answer. The context ends when the client is gone or End is called.
func NewStream(w http.ResponseWriter, r *http.Request) (*Stream, context.Context) {
	ctx, stop := context.WithCancel(r.Context())
	s := &Stream{w: w, control: http.NewResponseController(w), stop: stop}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx passes each frame on
	w.WriteHeader(http.StatusOK)
	s.Comment("stream")
	go s.tick(ctx)
	return s, ctx
}

// tick writes a comment at times.
func (s *Stream) tick(ctx context.Context) {
	ticker := time.NewTicker(keepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.Comment("")
		}
	}
}

// End ends the stream. No method may be called after the handler returned.
func (s *Stream) End() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = context.Canceled
	_ = s.control.SetWriteDeadline(time.Time{}) // the connection may carry another request
}

// Comment writes a line that clients ignore.
func (s *Stream) Comment(text string) { s.write([]byte(": " + text + "\n\n")) }

// Frame is one server-sent event. The empty ID and Event are left out.
type Frame struct {
	ID, Event string
	Data      []byte
}

// Send writes a frame, and reports whether the client still reads.
func (s *Stream) Send(f Frame) bool {
	var b bytes.Buffer
	if f.ID != "" {
		b.WriteString("id: " + oneLine(f.ID) + "\n")
	}
	if f.Event != "" {
		b.WriteString("event: " + oneLine(f.Event) + "\n")
	}
	for line := range bytes.SplitSeq(f.Data, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(bytes.ReplaceAll(line, []byte("\r"), nil)) // JSON has none
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return s.write(b.Bytes())
}

func (s *Stream) write(text []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(stall)) // a recorder in a test has none
	if _, s.err = s.w.Write(text); s.err == nil {
		s.err = s.control.Flush()
	}
	if s.err != nil {
		s.stop()
	}
	return s.err == nil
}

func oneLine(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "\x00", " ").Replace(s)
}

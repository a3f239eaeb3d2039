package jetstream_test

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// recorder keeps the bytes that the connections of a store receive and send.
type recorder struct {
	mu             sync.Mutex
	received, sent bytes.Buffer
}

func (r *recorder) wrap(conn net.Conn) net.Conn { return &recording{conn, r} }

type recording struct {
	net.Conn
	recorder *recorder
}

func (c *recording) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	c.recorder.received.Write(p[:n])
	return n, err
}

func (c *recording) Write(p []byte) (int, error) {
	c.recorder.mu.Lock()
	c.recorder.sent.Write(p)
	c.recorder.mu.Unlock()
	return c.Conn.Write(p)
}

// messages counts the sent messages, without those of the control stream.
func (r *recorder) messages() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range bytes.Lines(r.sent.Bytes()) {
		if (bytes.HasPrefix(line, []byte("PUB ")) || bytes.HasPrefix(line, []byte("HPUB "))) && !bytes.Contains(line, []byte("control")) {
			n++
		}
	}
	return n
}

// has reports whether the received bytes have a text.
func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.received.Bytes(), []byte(text))
}

// A redaction and a removal receive neither lines nor names of other sessions. A listing
// receives both.
func TestErasureReadsOneSession(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	var shared event.BlobRef
	for i := range 40 {
		ref, err := log.PutBlob(t.Context(), strings.NewReader(fmt.Sprint("body ", i%20)))
		if err != nil {
			t.Fatal(err)
		}
		session := fmt.Sprint("other ", i)
		if i%20 == 0 {
			session, shared = fmt.Sprint("s", i), ref
		}
		if _, err := log.Append(t.Context(), session, eventlog.New(), event.UserMessage("text of "+session), suite.Image(ref)); err != nil {
			t.Fatal(err)
		}
	}
	var r recorder
	const name, text = "b3RoZXIg", "text of other" // the name is "other " in base64
	recorded := openLog(t, jetstream.Options{Connect: connectTo(servers.Nodes[0], r.wrap)})
	if _, err := erase.Redact(t.Context(), recorded, "s0", []int64{1, 2}, erase.RedactOptions{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := erase.Remove(t.Context(), recorded, "s20"); err != nil {
		t.Fatal(err)
	}
	if r.has(name) || r.has(text) || !r.has("text of s0") {
		t.Errorf("the erasures received names of other sessions: %v, lines: %v; lines of their own: %v", r.has(name), r.has(text), r.has("text of s0"))
	}
	if _, err := recorded.OpenBlob(t.Context(), shared.Blob); err != nil {
		t.Errorf("the redaction removed a blob that session s20 used: %v", err)
	}
	if _, err := suite.Collect(recorded.Sessions(t.Context())); err != nil || !r.has(name) || !r.has(text) {
		t.Errorf("list: %v; received names: %v, lines: %v", err, r.has(name), r.has(text))
	}
}

// An append to a session costs one message, unless it lists blobs. Watermarks are written beside
// the appends, to the control stream.
func TestMessagesOfAnAppend(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	var r recorder
	log := openLog(t, jetstream.Options{Connect: connectTo(servers.Nodes[0], r.wrap)})
	add := func() {
		t.Helper()
		if _, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	add()
	for range 4 {
		sent := r.messages()
		add()
		if n := r.messages() - sent; n != 1 {
			t.Errorf("an append sent %d messages", n)
		}
	}
}

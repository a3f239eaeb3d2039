package jetstream_test

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

// meanwhile is a connection that calls before, if it is set, for each request before it is written.
type meanwhile struct {
	net.Conn
	before *atomic.Pointer[func()]
}

func (c meanwhile) Write(p []byte) (int, error) {
	if before := c.before.Load(); before != nil {
		for range bytes.Count(p, []byte("PUB $JS.API.")) { // several requests may be one write
			(*before)()
		}
	}
	return c.Conn.Write(p)
}

// interrupted are the ways to read a session of which lines are redacted meanwhile.
var interrupted = []struct {
	name string
	read func(t *testing.T, log *eventlog.Log, session string, events int64) error
}{
	{"forward", func(t *testing.T, log *eventlog.Log, session string, events int64) error {
		return countFrom(t, log, session, eventlog.Span{}, 1, 1, events)
	}},
	{"backward", func(t *testing.T, log *eventlog.Log, session string, events int64) error {
		return countFrom(t, log, session, eventlog.Span{To: events, Backward: true}, events, -1, events)
	}},
	{"salvage", func(t *testing.T, log *eventlog.Log, session string, events int64) error {
		due := int64(1)
		for f, err := range log.Store().(eventlog.Salvager).Fragments(t.Context(), session) {
			if err != nil || f.Err != nil || f.Seq != due {
				return fmt.Errorf("fragment %d, want %d: %v, %v", f.Seq, due, f.Err, err)
			}
			due++
		}
		if due <= events {
			return fmt.Errorf("%d fragments of %d", due-1, events)
		}
		return nil
	}},
	{"verify", func(t *testing.T, log *eventlog.Log, session string, events int64) error {
		report, err := verify.Session(t.Context(), log, session)
		if err == nil && (len(report.Defects) > 0 || report.Events < events) {
			err = fmt.Errorf("%d events of %d, %v", report.Events, events, report.Defects)
		}
		return err
	}},
}

// countFrom reads a span, whose first events must be those from a seq on in steps.
func countFrom(t *testing.T, log *eventlog.Log, session string, span eventlog.Span, due, step, events int64) error {
	n := int64(0)
	for e, err := range log.Store().Read(t.Context(), session, span) {
		if err != nil || e.Seq != due {
			return fmt.Errorf("event %d, want %d: %v", e.Seq, due, err)
		}
		n, due = n+1, due+step
	}
	if n < events {
		return fmt.Errorf("%d events of %d", n, events)
	}
	return nil
}

// Lines are redacted before any request of a reader, or before each: the reader misses no event,
// and sees no damage.
func TestRedactedMeanwhile(t *testing.T) {
	t.Parallel()
	events := testsize.Pick[int64](8, 8, 70) // more than a page in the long form
	servers := natstest.Shared(t, false)
	for _, x := range interrupted {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			before := &atomic.Pointer[func()]{}
			direct := jetstream.Options{Connect: servers.Connect, Prefix: x.name}
			reading := jetstream.Options{Prefix: x.name, ReadOnly: true}
			reading.Connect = connectTo(servers.Nodes[0], func(c net.Conn) net.Conn { return meanwhile{c, before} })
			other := openLog(t, direct)
			for at := 0; at < 100; at += testsize.Pick(4, 2, 1) {
				session := fmt.Sprint(x.name, at)
				writer := openLog(t, direct)
				for n := range events {
					if _, err := writer.Append(t.Context(), session, eventlog.Any(), event.UserMessage(fmt.Sprint("text ", n))); err != nil {
						t.Fatal(err)
					}
				}
				redact := func(log *eventlog.Log, seqs ...int64) {
					if _, err := erase.Redact(t.Context(), log, session, seqs, erase.RedactOptions{Reason: "test"}); err != nil {
						t.Error(err)
					}
				}
				redact(writer, 2, events/2)
				if err := writer.Close(); err != nil { // stores the watermark, so the reader makes the same requests each time
					t.Fatal(err)
				}
				log := openLog(t, reading)
				if _, err := log.Head(t.Context(), "another session"); err == nil {
					t.Fatal("a session that was never written")
				}
				requests := 0
				var once sync.Mutex
				hook := func() {
					once.Lock()
					defer once.Unlock()
					requests++
					switch {
					case at == 0: // before each request
						redact(other, int64(requests-1)%events+1)
					case requests == at:
						redact(other, 1, 3, events/2+1, events)
					}
				}
				before.Store(&hook)
				err := x.read(t, log, session, events)
				before.Store(nil)
				if err != nil {
					t.Errorf("lines are redacted before request %d: %v", at, err)
				}
				if at > 0 && requests < at {
					return // the reader is done
				}
			}
		})
	}
}

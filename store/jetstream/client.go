package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/eventlog"
)

const (
	// resendPause is the wait for an answer before a request is sent again. It doubles up
	// to longestPause, because a busy server may be slow.
	resendPause  = 250 * time.Millisecond
	longestPause = 2 * time.Second
	// busyPause is the wait after an answer that asks to try again.
	busyPause = 5 * time.Millisecond
	// patience bounds the wait for a server while no request can have changed anything.
	// It is longer than the election of a leader.
	patience = 10 * time.Second
	// deafTime bounds the wait while no server listens to a request of the API, or none can
	// be reached.
	deafTime = 2 * time.Second
)

// client is the connection of a store. Its requests are sent again until an answer
// arrives. An answer counts whichever sending it belongs to.
type client struct {
	nc    *nats.Conn
	inbox string // answers arrive at this subject with a number appended
	ended <-chan struct{}

	mu     sync.Mutex
	calls  map[string]*call
	number uint64
	deafTo error // the user may not receive answers
}

// call is a request that waits for answers.
type call struct {
	client  *client
	subject string // of the request
	reply   string
	answers chan *nats.Msg
	denied  chan error
}

// newClient returns the client of a connection. Its calls end when ended is closed.
func newClient(nc *nats.Conn, ended <-chan struct{}) (*client, error) {
	c := &client{nc: nc, inbox: nc.NewInbox() + ".", ended: ended, calls: make(map[string]*call)}
	sub, err := nc.Subscribe(c.inbox+"*", c.answered)
	if err != nil {
		return nil, err
	}
	return c, sub.SetPendingLimits(-1, -1)
}

// answered passes an answer to its call.
func (c *client) answered(m *nats.Msg) {
	c.mu.Lock()
	waiting := c.calls[m.Subject]
	c.mu.Unlock()
	if waiting == nil {
		return // a late answer
	}
	select {
	case waiting.answers <- m:
	default: // more answers than were asked for
	}
}

// denied ends the calls that lack a right: to publish their subject, or to receive
// answers. The server names the subject in quotes.
func (c *client) denied(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(err.Error(), `"`+c.inbox) {
		c.deafTo = err
	}
	for _, waiting := range c.calls {
		if c.deafTo != nil || strings.Contains(err.Error(), strconv.Quote(waiting.subject)) {
			select {
			case waiting.denied <- err:
			default:
			}
		}
	}
}

// begin returns a call that takes up to n answers. The caller ends it.
func (c *client) begin(subject string, n int) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.number++
	waiting := &call{client: c, subject: subject, reply: c.inbox + strconv.FormatUint(c.number, 36), answers: make(chan *nats.Msg, n), denied: make(chan error, 1)}
	c.calls[waiting.reply] = waiting
	if c.deafTo != nil {
		waiting.denied <- c.deafTo
	}
	return waiting
}

func (w *call) end() {
	w.client.mu.Lock()
	defer w.client.mu.Unlock()
	delete(w.client.calls, w.reply)
}

// unknownError reports that a request was sent and not answered: it may have been
// executed.
type unknownError struct{ cause error }

func (e *unknownError) Error() string { return "no answer: " + e.cause.Error() }
func (e *unknownError) Unwrap() error { return e.cause }

// exchange sends a request and waits for an answer that is final. It sends the request
// again after resendPause. If ctx ends and a sending has no answer, the error is an
// *unknownError. A request that may change something (changes) is sent until ctx ends;
// others end with ErrUnavailable after patience.
func (c *client) exchange(ctx context.Context, subject string, changes bool, send func(reply string) error) (*nats.Msg, error) {
	w := c.begin(subject, 16)
	defer w.end()
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	began, open := time.Now(), false
	silence := resendPause
	for {
		pause := resendPause
		err := send(w.reply)
		if err == nil {
			timer.Reset(silence)
			var m *nats.Msg
			if m, err = w.wait(ctx, timer.C); err == nil {
				return m, nil
			}
			if errors.Is(err, errBusy) {
				pause = busyPause
			} else {
				open = open || !errors.Is(err, nats.ErrNoResponders)
				if errors.Is(err, errSilent) {
					pause, silence = 0, min(2*silence, longestPause)
				}
			}
		}
		if final := c.final(ctx, err, open, changes, time.Since(began)); final != nil {
			return nil, final
		}
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-c.ended:
		case <-ctx.Done():
			return nil, c.final(ctx, ctx.Err(), open, changes, 0)
		}
	}
}

// flush waits until the server has received all that was sent. Without an answer it ends like an
// exchange that changes nothing.
func (c *client) flush(ctx context.Context) error {
	for began := time.Now(); ; {
		limited, cancel := context.WithTimeout(ctx, deafTime)
		err := c.nc.FlushWithContext(limited)
		silent := limited.Err() != nil
		cancel()
		if err == nil || !silent {
			return err
		}
		if err := c.final(ctx, errSilent, false, false, time.Since(began)); err != nil {
			return err
		}
	}
}

var (
	errSilent = errors.New("the server does not answer")
	errBusy   = errors.New("the server is busy")
)

// final returns the error that ends an exchange, or nil to send again. open says that a
// sending has no answer.
func (c *client) final(ctx context.Context, err error, open, changes bool, took time.Duration) error {
	open = open && changes
	switch {
	case errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return err
	case ctx.Err() != nil && open:
		return &unknownError{ctx.Err()}
	case ctx.Err() != nil:
		return ctx.Err()
	case c.isEnded() && open:
		return &unknownError{eventlog.ErrClosed}
	case c.isEnded():
		return nats.ErrConnectionClosed
	case errors.Is(err, nats.ErrNoResponders) && !changes && took >= deafTime:
		return c.deaf()
	case !open && took >= deafTime && !c.nc.IsConnected():
		return fmt.Errorf("%w: no server can be reached", eventlog.ErrUnavailable)
	case open || took < patience:
		return nil
	default:
		return fmt.Errorf("%w: %s", eventlog.ErrUnavailable, oneLine(err.Error()))
	}
}

// deaf is the error of a request that no server listens to.
func (c *client) deaf() error {
	if on, _ := c.nc.ConnectedServerJetStream(); !on && c.nc.IsConnected() {
		return fmt.Errorf("%w: JetStream is off: turn it on for the server and the account", ErrForeign)
	}
	return nats.ErrNoResponders
}

func (c *client) isEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return c.nc.IsClosed()
	}
}

// wait waits for one answer.
func (w *call) wait(ctx context.Context, timeout <-chan time.Time) (*nats.Msg, error) {
	select {
	case m := <-w.answers:
		switch {
		case len(m.Data) == 0 && m.Header.Get("Status") == "503" && len(m.Header["Nats-Sequence"]) == 0:
			return nil, nats.ErrNoResponders
		case isBusyAnswer(m):
			return nil, errBusy
		}
		return m, nil
	case err := <-w.denied:
		return nil, err
	case <-timeout:
		return nil, errSilent
	case <-w.client.ended:
		return nil, nats.ErrConnectionClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// isBusyAnswer reports whether an answer of JetStream asks to try again. Messages of a
// stream have headers, and answers of the API have none.
func isBusyAnswer(m *nats.Msg) bool {
	if len(m.Header) > 0 || !strings.Contains(string(m.Data[:min(len(m.Data), 300)]), `"error"`) {
		return false
	}
	var answer struct{ Error *apiError }
	return json.Unmarshal(m.Data, &answer) == nil && answer.Error != nil && answer.Error.isBusy()
}

// request sends a request to the API of JetStream and decodes its answer.
func (c *client) request(ctx context.Context, subject string, body, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	m, err := c.exchange(ctx, subject, false, func(reply string) error { return c.nc.PublishRequest(subject, reply, data) })
	if err != nil {
		return err
	}
	var failed struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &failed); err != nil {
		return fmt.Errorf("answer to %s: %w", subject, err)
	}
	if failed.Error != nil {
		return failed.Error
	}
	return json.Unmarshal(m.Data, answer)
}

// acked is the answer to a published message.
type acked struct {
	Seq       uint64    `json:"seq"`
	Duplicate bool      `json:"duplicate"`
	Error     *apiError `json:"error"`
}

// decodeAck decodes the answer to a message that was sent a number of times.
func decodeAck(m *nats.Msg, sent int) (seq uint64, err error) {
	var answer acked
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return 0, fmt.Errorf("acknowledgement: %w", err)
	}
	if answer.Error != nil {
		answer.Error.resent = sent > 1
		return 0, answer.Error
	}
	return answer.Seq, nil
}

// publish stores a message and returns its sequence.
func (c *client) publish(ctx context.Context, m *nats.Msg) (uint64, error) {
	times := 0
	answer, err := c.exchange(ctx, m.Subject, true, func(reply string) error {
		times++
		sent := *m
		sent.Reply = reply
		return c.nc.PublishMsg(&sent)
	})
	if err != nil {
		return 0, err
	}
	return decodeAck(answer, times)
}

// publishAll stores several messages of one stream, all or none, and returns the
// sequence of the last one.
func (c *client) publishAll(ctx context.Context, messages []*nats.Msg) (uint64, error) {
	times := 0
	answer, err := c.exchange(ctx, messages[0].Subject, true, func(reply string) error {
		times++
		batch := newID()
		for i, m := range messages {
			sent := &nats.Msg{Subject: m.Subject, Header: make(nats.Header, len(m.Header)+3), Data: m.Data}
			for name, values := range m.Header {
				sent.Header[name] = values
			}
			sent.Header.Set("Nats-Batch-Id", batch)
			sent.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
			if i == len(messages)-1 {
				sent.Header.Set("Nats-Batch-Commit", "1")
				sent.Reply = reply
			}
			if err := c.nc.PublishMsg(sent); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return decodeAck(answer, times)
}

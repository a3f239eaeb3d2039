package jetstream_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/verify"
)

// replays is the number of times that an old state answers each request.
const replays = 3

// follower passes requests to a server and answers back. It says that the streams have
// three replicas. While it is stale it answers like a replica that lacks messages: as it
// has answered the same request before, or that there is no message.
type follower struct {
	t      testing.TB
	front  *nats.Conn // has the store
	server *nats.Conn

	mu       sync.Mutex
	pick     func(sent, got *nats.Msg) bool // if set, only the answers that it accepts are passed on
	stale    bool
	lasting  bool                 // direct gets are answered from the old state each time
	seen     map[string]*nats.Msg // the last answer to a request of the API
	replayed map[string]int       // the number of old answers to a request
}

// behindFollower returns the options of a store that asks a follower, and of another store
// that asks the server.
func behindFollower(t *testing.T) (*follower, jetstream.Options, jetstream.Options) {
	server, front := natstest.Shared(t, false), natstest.Start(t, natstest.Options{JetStream: "enabled: false"})
	f := &follower{t: t, front: connect(t, front), server: connect(t, server), seen: map[string]*nats.Msg{}}
	for _, subject := range []string{"$JS.API.>", "convlog.*.>"} {
		if _, err := f.front.Subscribe(subject, f.pass); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.front.Flush(); err != nil {
		t.Fatal(err)
	}
	return f, jetstream.Options{Connect: front.Connect}, jetstream.Options{Connect: server.Connect}
}

func connect(t *testing.T, servers *natstest.Cluster) *nats.Conn {
	nc, err := servers.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// pass answers a request from an old state, or passes it on.
func (f *follower) pass(m *nats.Msg) {
	key := m.Subject + " " + string(m.Data)
	if old := f.old(m, key); old != nil {
		f.answer(m.Reply, old)
		return
	}
	sent := &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}
	if m.Reply != "" {
		sent.Reply = f.server.NewInbox()
		_, err := f.server.Subscribe(sent.Reply, func(got *nats.Msg) {
			got.Data = bytes.ReplaceAll(got.Data, []byte(`"num_replicas":1`), []byte(`"num_replicas":3`))
			f.mu.Lock()
			if !f.stale && strings.HasPrefix(m.Subject, "$JS.API.STREAM.") {
				f.seen[key] = got
			}
			pick := f.pick
			f.mu.Unlock()
			if pick == nil || pick(m, got) {
				f.answer(m.Reply, got)
			}
		})
		if err != nil {
			f.t.Error(err)
		}
	}
	if err := f.server.PublishMsg(sent); err != nil {
		f.t.Error(err)
	}
}

// old is the answer of an old state to a request; nil if the state is current.
func (f *follower) old(m *nats.Msg, key string) *nats.Msg {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.seen[key]
	switch {
	case strings.HasPrefix(m.Subject, "$JS.API.DIRECT.GET."):
		old = &nats.Msg{Header: nats.Header{"Status": []string{"404"}, "Description": []string{"Message Not Found"}}}
	case old == nil && strings.HasPrefix(m.Subject, "$JS.API.STREAM.MSG.GET."):
		old = &nats.Msg{Data: []byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`)}
	}
	lasting := f.lasting && strings.HasPrefix(m.Subject, "$JS.API.DIRECT.GET.")
	if !f.stale || old == nil || f.lasting && !lasting || f.replayed[key] == replays && !lasting {
		return nil
	}
	f.replayed[key]++
	return old
}

func (f *follower) answer(reply string, m *nats.Msg) {
	if err := f.front.PublishMsg(&nats.Msg{Subject: reply, Header: m.Header, Data: m.Data}); err != nil {
		f.t.Error(err)
	}
}

// during runs check while the follower is stale, and checks that old answers to requests of
// a kind were given.
func (f *follower) during(what, kind string, check func()) {
	f.mu.Lock()
	f.stale, f.replayed = true, map[string]int{}
	f.mu.Unlock()
	check()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale = false
	for key := range f.replayed {
		if strings.HasPrefix(key, "$JS.API."+kind) {
			return
		}
	}
	f.t.Errorf("%s: no request %s was answered from an old state, only %v", what, kind, f.replayed)
}

// A replica that lacks messages answers that there is none. The store asks again, because it
// knows that there are newer messages. It reports neither damage nor a missing session.
func TestStaleAnswers(t *testing.T) {
	t.Parallel()
	f, through, direct := behindFollower(t)
	log, other := openLog(t, through), openLog(t, direct)
	add := func(l *eventlog.Log, session string) {
		t.Helper()
		if _, err := l.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	add(log, "known")
	suite.CheckEvents(t, log, "known", 1)
	_, err := log.Head(t.Context(), "new")
	wantError(t, "a session before it is created", eventlog.ErrNotFound, err)
	if infos, err := suite.Collect(log.Sessions(t.Context())); err != nil || len(infos) != 1 {
		t.Fatalf("list: %d sessions, %v", len(infos), err)
	}
	add(other, "new")
	add(log, "known") // now the store knows a message after the first one of the new session

	read := func(session string, want int) {
		t.Helper()
		if events, err := suite.Collect(log.Read(t.Context(), session, eventlog.All())); err != nil || len(events) != want {
			t.Errorf("session %q: read %d events, %v; want %d", session, len(events), err, want)
		}
	}
	f.during("a new session", "STREAM.INFO", func() { read("new", 1) })
	f.during("a longer session", "STREAM.MSG.GET", func() { read("known", 2) })
	f.during("messages of a session", "DIRECT.GET", func() { read("known", 2) })
	f.during("verify", "DIRECT.GET", func() { suite.CheckEvents(t, log, "known", 2) })
	f.during("list", "STREAM.INFO", func() {
		infos, err := suite.Collect(log.Sessions(t.Context()))
		if err != nil || len(infos) != 2 {
			t.Errorf("list: %d sessions, %v", len(infos), err)
		}
		for _, info := range infos {
			if info.Err != nil {
				t.Errorf("list: session %q: %v", info.ID, info.Err)
			}
		}
	})
	f.during("append", "STREAM.MSG.GET", func() {
		add(other, "known")
		add(log, "known")
	})
	suite.CheckEvents(t, other, "known", 4)
}

// A replica that lacks marks does not hide the users of a blob, or the relatives of a session.
func TestStaleMarks(t *testing.T) {
	t.Parallel()
	f, through, direct := behindFollower(t)
	log, other := openLog(t, through), openLog(t, direct)
	store := log.Store()
	ref, err := log.PutBlob(t.Context(), strings.NewReader("body 0"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "known", eventlog.New(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	wantUsers(t, store, 1)
	wantRelated(t, store, "known", "known")
	if _, err := other.Append(t.Context(), "run", eventlog.New(), suite.NewEvent(event.SessionStarted, `{"parent":{"session_id":"known"}}`), suite.Image(ref)); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "known", eventlog.Any(), event.UserMessage("hello")); err != nil {
		t.Fatal(err)
	}
	f.during("users of a blob", "STREAM.INFO", func() { wantUsers(t, store, 1, "0:run:2") })
	f.during("marks of a blob", "DIRECT.GET", func() { wantUsers(t, store, 1, "0:run:2") })
	f.during("related sessions", "STREAM.INFO", func() { wantRelated(t, store, "known", "known", "run") })
}

// A server whose replica has lost its messages, and stays behind, answers direct requests of its
// clients. They get the messages from the leader.
func TestReplicaThatStaysBehind(t *testing.T) {
	t.Parallel()
	f, through, direct := behindFollower(t)
	other := openLog(t, direct)
	ref, err := other.PutBlob(t.Context(), strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err := other.Append(t.Context(), fmt.Sprint("s", i%3), eventlog.Any(), event.UserMessage("hello")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Append(t.Context(), "s1", eventlog.Any(), suite.Image(ref)); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil { // stores the watermarks
		t.Fatal(err)
	}
	log := openLog(t, through)
	f.lasting = true
	f.during("verify", "DIRECT.GET", func() {
		for d, err := range verify.Store(t.Context(), log) {
			if err != nil || d.Rule != verify.RuleWatermark {
				t.Errorf("the store: %v, %v", d, err)
			}
		}
		suite.CheckEvents(t, log, "s0", 10)
		suite.CheckEvents(t, log, "s1", 11)
		infos, err := suite.Collect(log.Sessions(t.Context()))
		if err != nil || len(infos) != 3 {
			t.Errorf("list: %d sessions, %v", len(infos), err)
		}
		if _, err := log.Append(t.Context(), "s2", eventlog.Any(), event.UserMessage("more")); err != nil {
			t.Error(err)
		}
	})
}

package jetstream_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/erase"
)

// add appends one event to session "s" of a new store.
func add(t testing.TB, options jetstream.Options) error {
	t.Helper()
	_, err := openLog(t, options).Append(t.Context(), "s", eventlog.Any(), event.UserMessage("hello"))
	return err
}

// wantCause checks an error and its text.
func wantCause(t testing.TB, what string, want, got error, text string) {
	t.Helper()
	if !errors.Is(got, want) || !strings.Contains(got.Error(), text) || strings.Contains(got.Error(), "\n") {
		t.Errorf("%s: got error %v, want one line with %v and %q", what, got, want, text)
	}
}

// Malformed URLs and options are errors, which have no password.
func TestBadURLs(t *testing.T) {
	for _, url := range []string{
		"", "nats://", "http://user:secret@host", "nats://user:secret@host/path", "nats://user:sec%ret@host", "host:4222",
		"nats://user:secret@host?shards=many", "nats://user:secret@host?shards=1000", "nats://user:secret@host?replicas=2",
		"nats://user:secret@host?prefix=a.b", "nats://user:secret@host?prefix=*", "nats://user:secret@host?synced=perhaps",
		"nats://user:secret@host?option=secret",
	} {
		_, err := jetstream.New(url)
		_, public := jetstream.Public(url)
		if err == nil || public == nil || strings.Contains(err.Error(), "user") || strings.Contains(err.Error(), ":secret") {
			t.Errorf("%q: got errors %v and %v", url, err, public)
		}
	}
	for url, want := range map[string]string{
		"nats://user:secret@host:4222":                          "nats://host:4222",
		"nats://token@a,tls://u:p@b:1?prefix=log&credentials=c": "nats://a,tls://b:1?prefix=log",
	} {
		if got, err := jetstream.Public(url); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", url, got, err, want)
		}
	}
}

// request asks the API of JetStream as an administrator.
func request(t testing.TB, servers *natstest.Cluster, subject string, body any) {
	t.Helper()
	nc, err := servers.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := nc.Request("$JS.API."+subject, data, 10*time.Second)
	if err != nil || strings.Contains(string(answer.Data), `"error"`) {
		t.Fatalf("%s: %v %s", subject, err, answer.Data)
	}
}

// The store refuses streams of other programs, and streams that lost a setting.
func TestForeignStreams(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	with := func(change func(o *jetstream.Options)) jetstream.Options {
		o := options
		change(&o)
		return o
	}
	missing := with(func(o *jetstream.Options) { o.MustExist = true })
	wantCause(t, "no log", jetstream.ErrNoLog, add(t, missing), "convlog_*")
	if err := add(t, with(func(o *jetstream.Options) { o.Shards = 3 })); err != nil {
		t.Fatal(err)
	}
	if err := add(t, missing); err != nil {
		t.Errorf("an existing log: %v", err)
	}
	wantCause(t, "another number of shards", jetstream.ErrForeign, add(t, with(func(o *jetstream.Options) { o.Shards = 2 })), "shards=3")
	wantCause(t, "too few replicas", jetstream.ErrForeign, add(t, with(func(o *jetstream.Options) { o.Replicas = 3 })), "add replicas")
	wantCause(t, "replicas without servers", jetstream.ErrForeign, add(t, with(func(o *jetstream.Options) { o.Prefix, o.Replicas = "new", 3 })), "replicas")

	foreign := map[string]any{"name": "other_control", "subjects": []string{"elsewhere"}, "storage": "file"}
	request(t, servers, "STREAM.CREATE.other_control", foreign)
	wantCause(t, "a stream of another program", jetstream.ErrForeign, add(t, with(func(o *jetstream.Options) { o.Prefix = "other" })), "another program")
	newer := map[string]any{"name": "newer_control", "subjects": []string{"newer.control.>"}, "storage": "file",
		"metadata": map[string]string{"convlog.version": "99", "convlog.shards": "1"}}
	request(t, servers, "STREAM.CREATE.newer_control", newer)
	var version *event.VersionError
	if err := add(t, with(func(o *jetstream.Options) { o.Prefix = "newer" })); !errors.As(err, &version) || version.Got != 99 {
		t.Errorf("a newer log: %v", err)
	}
	request(t, servers, "STREAM.UPDATE.convlog_1", map[string]any{"name": "convlog_1", "subjects": []string{"convlog.1.>"}, "storage": "file",
		"retention": "limits", "discard": "new", "allow_direct": true, "allow_atomic": true, "allow_msg_ttl": true, "num_replicas": 1, "max_age": int64(time.Hour),
		"republish": map[string]any{"src": "convlog.1.>", "dest": "convlog.live.1.>", "headers_only": true}})
	wantCause(t, "a stream with an age", jetstream.ErrForeign, add(t, options), "convlog_1 loses old messages")
}

// An append that demands durability is refused, unless the operator says that the servers
// sync.
func TestNotSynced(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	_, err := log.Append(t.Context(), "s", eventlog.Any().Durable(), event.UserMessage("hello"))
	wantCause(t, "a durable append", jetstream.ErrNotSynced, err, "sync_interval")
	if err := add(t, jetstream.Options{Connect: servers.Connect}); err != nil {
		t.Error(err)
	}
	suite.CheckEvents(t, log, "s", 1)
}

// A wrong password and a missing right are errors that name the remedy.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Client: []nats.Option{nats.UserInfo("writer", "secret")}, Settings: `authorization { users: [
		{ user: "writer", password: "secret", permissions: {
			publish: { allow: ["convlog.>", "$JS.API.STREAM.>", "$JS.API.DIRECT.GET.>"] }, subscribe: { allow: ["_INBOX.>", "convlog.live.>"] } } }
		{ user: "reader", password: "secret", permissions: {
			publish: { allow: ["$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.*"] }, subscribe: { allow: ["_INBOX.>", "convlog.live.>"] } } }
		{ user: "deaf", password: "secret", permissions: { subscribe: { deny: [">"] } } }
	] }`})
	writer := openLog(t, jetstream.Options{Connect: servers.Connect})
	if _, err := writer.PutBlob(t.Context(), strings.NewReader("body")); err != nil {
		t.Fatal(err)
	}
	if err := add(t, jetstream.Options{Connect: servers.Connect}); err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Redact(t.Context(), writer, "s", []int64{1}, erase.RedactOptions{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	as := func(user, password string) jetstream.Options {
		return jetstream.Options{Connect: func(options ...nats.Option) (*nats.Conn, error) {
			return nats.Connect(servers.URL(), append(options, nats.UserInfo(user, password))...)
		}}
	}
	wantCause(t, "a wrong password", jetstream.ErrDenied, add(t, as("writer", "guess")), "Authorization")
	reader := openLog(t, as("reader", "secret"))
	suite.CheckEvents(t, reader, "s", 2)
	infos, err := suite.Collect(reader.Sessions(t.Context()))
	if err != nil || len(infos) != 2 { // and the notes of the store
		t.Errorf("list: %d sessions, %v", len(infos), err)
	}
	wantCause(t, "a missing right", jetstream.ErrDenied, add(t, as("reader", "secret")), `"convlog.0.session.cw.frames"`)
	wantCause(t, "no right to get answers", jetstream.ErrDenied, add(t, as("deaf", "secret")), "_INBOX")
	suite.CheckEvents(t, reader, "s", 2)
}

// An append that the server does not take names the limit.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Payload: 16 << 10})
	store := openLog(t, jetstream.Options{Connect: servers.Connect}).Store()
	err := store.Append(t.Context(), "s", event.Head{}, suite.BatchAfter("s", event.Head{}, 100), false)
	wantCause(t, "a large append", event.ErrInvalidSize, err, "max_payload")
	if err := store.Append(t.Context(), "s", event.Head{}, suite.BatchAfter("s", event.Head{}, 10), false); err != nil {
		t.Error(err)
	}
}

// Many sessions, appends and rewrites in several shards are read as they were written.
func TestShards(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	store := openLog(t, jetstream.Options{Connect: servers.Connect, Shards: 5}).Store()
	lines := map[string][]string{}
	for n := 0; n < 12; n += testsize.Pick(8, 6, 1) {
		session := strings.Repeat("é", n+1)
		head, frames := event.Head{}, 1+n*50
		var events []event.Event
		for i := range frames {
			batch := suite.BatchAfter(session, head, 1+i%3)
			if err := store.Append(t.Context(), session, head, batch, false); err != nil {
				t.Fatal(err)
			}
			events, head = append(events, batch...), suite.HeadOf(batch)
		}
		for _, i := range []int{0, len(events) / 2, len(events) - 1, len(events) / 2} {
			redacted := events[i]
			if !redacted.Redacted() {
				redacted = suite.RedactedLine(redacted)
			}
			add := suite.BatchAfter(session, head, 1)
			if err := store.(eventlog.Eraser).Rewrite(t.Context(), session, head, []event.Event{redacted}, add); err != nil {
				t.Fatal(err)
			}
			events[i] = redacted
			events, head = append(events, add...), suite.HeadOf(add)
		}
		lines[session] = suite.LinesOf(events)
	}
	for info, err := range store.Sessions(t.Context()) {
		want := lines[info.ID]
		if err != nil || info.Err != nil || string(info.First.Line()) != want[0] || string(info.Last.Line()) != want[len(want)-1] {
			t.Errorf("session %q is listed as %+v: %v", info.ID, info, err)
			continue
		}
		if size := int64(len(strings.Join(want, "\n")) + 1); info.Bytes != size {
			t.Errorf("session %q has %d bytes, want %d", info.ID, info.Bytes, size)
		}
		wantLines(t, store, info.ID, want)
		for from := int64(1); from <= int64(len(want)); from += 7 {
			events, err := suite.Collect(store.Read(t.Context(), info.ID, eventlog.Span{From: from, Limit: 3}))
			if err != nil || len(events) == 0 || string(events[0].Line()) != want[from-1] {
				t.Errorf("session %q from %d: %d events, %v", info.ID, from, len(events), err)
			}
		}
		delete(lines, info.ID)
	}
	if len(lines) > 0 {
		t.Errorf("%d sessions are not listed", len(lines))
	}
}

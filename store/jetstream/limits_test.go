package jetstream_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
)

// A server or an account that cannot store a log is an error that names the remedy.
func TestUnfitServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		servers  natstest.Options
		replicas int
		remedy   string
	}{
		"JetStream is off":                 {natstest.Options{JetStream: "enabled: false"}, 1, "turn it on for the server and the account"},
		"the account has no JetStream":     {natstest.Options{Account: natstest.Account{Off: true}}, 1, "turn JetStream on for the server and the account"},
		"the account has too few streams":  {natstest.Options{Account: natstest.Account{Streams: 2}}, 1, "raise the number of streams that the account may have"},
		"messages are too small":           {natstest.Options{Payload: 2 << 10}, 1, "raise its max_payload to 16384 or more"},
		"one server for three replicas":    {natstest.Options{}, 3, "run as many servers as the option replicas says, or lower it"},
		"three servers for five replicas":  {natstest.Options{Nodes: 3}, 5, "run as many servers as the option replicas says, or lower it"},
		"streams of the account are sized": {natstest.Options{Account: natstest.Account{SizedStreams: true}}, 1, "let the account have streams without max_bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			options := jetstream.Options{Connect: natstest.Start(t, test.servers).Connect, Replicas: test.replicas}
			wantCause(t, "append", jetstream.ErrForeign, add(t, options), test.remedy)
			_, err := openLog(t, options).PutBlob(t.Context(), strings.NewReader("body"))
			wantCause(t, "put a blob", jetstream.ErrForeign, err, test.remedy)
		})
	}
}

// An account that is full takes no append and no blob, and its log is read as before.
func TestFullAccount(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Account: natstest.Account{Bytes: 20 << 10}})
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	const remedy = "raise the limits of the account, the stream or the disk"
	stored := int64(0)
	for {
		_, err := log.Append(t.Context(), "s", eventlog.Any(), event.UserMessage(fmt.Sprint("hello ", stored)))
		if err != nil {
			wantCause(t, "append", jetstream.ErrForeign, err, remedy)
			break
		}
		stored++
	}
	_, err := log.PutBlob(t.Context(), strings.NewReader(strings.Repeat("body", 10<<10)))
	wantCause(t, "put a blob", jetstream.ErrForeign, err, remedy)
	suite.CheckEvents(t, openLog(t, jetstream.Options{Connect: servers.Connect}), "s", stored)
}

// A user who lacks a right gets the subject of the right in the error.
func TestMissingRights(t *testing.T) {
	t.Parallel()
	live := []string{"_INBOX.>", "convlog.live.>"}
	const info, get = "$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.>"
	account := natstest.Account{Users: []natstest.User{
		{Name: "owner", Password: "secret"},
		{Name: "no publish", Password: "secret", Publish: []string{info, get}, Subscribe: live},
		{Name: "no stream info", Password: "secret", Publish: []string{"convlog.>", get}, Subscribe: live},
		{Name: "no direct get", Password: "secret", Publish: []string{"convlog.>", info}, Subscribe: live},
		{Name: "no stream create", Password: "secret", Publish: []string{"convlog.>", "other.>", info, get}, Subscribe: live},
	}}
	servers := natstest.Start(t, natstest.Options{Account: account, Client: []nats.Option{nats.UserInfo("owner", "secret")}})
	if err := add(t, jetstream.Options{Connect: servers.Connect}); err != nil {
		t.Fatal(err)
	}
	as := func(user, prefix string) jetstream.Options {
		return jetstream.Options{Prefix: prefix, Connect: func(options ...nats.Option) (*nats.Conn, error) {
			return nats.Connect(servers.URL(), append(options, nats.UserInfo(user, "secret"))...)
		}}
	}
	for _, test := range []struct{ user, prefix, right string }{
		{"no publish", "convlog", `Publish to "convlog.0.session.cw.frames"`},
		{"no stream info", "convlog", `Publish to "$JS.API.STREAM.INFO.convlog_control"`},
		{"no direct get", "convlog", `Publish to "$JS.API.DIRECT.GET.convlog_control"`},
		{"no stream create", "other", `Publish to "$JS.API.STREAM.CREATE.other_control"`},
	} {
		wantCause(t, test.user, jetstream.ErrDenied, add(t, as(test.user, test.prefix)), test.right)
	}
	suite.CheckEvents(t, openLog(t, as("no publish", "convlog")), "s", 1) // reading works
}

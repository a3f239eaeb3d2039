package jetstream_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/upkeep/repair"
)

// hostileHeaders are headers of messages that a program with rights stores after two
// frames. Each one is damage, and no reader is led astray or runs forever.
func hostileHeaders() []string {
	frame := "v=1 id=x hash=" + event.Hash{}.String()
	return []string{
		"", "v=1", "garbage", frame, frame + " first=0 count=1", frame + " first=3 count=-1", frame + " first=3 count=0x",
		frame + " first=3 count=4611686018427387900 n=2 start=1:1 back=2:2",
		frame + " first=4611686018427387000 count=1 n=2 start=1:1 back=2:2",
		frame + " first=3 count=1 n=2 start=1:1 back=2:99",
		frame + " first=3 count=1 n=2 start=1:1 back=2:2,2:2,2:2",
		frame + " first=3 count=1 n=2 start=9:9 back=2:2",
		frame + " first=3 count=1 n=2 start=1:1 back=2:2 index=1",
		frame + " first=3 count=1 n=2 start=1:1 back=2:2 index=99",
		frame + " first=3 count=1 n=0 start=3:0",
		frame + " first=9 count=1 n=2 start=1:1 back=2:2",
	}
}

func TestHostileMessages(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	nc, err := servers.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for i, header := range hostileHeaders() {
		session := fmt.Sprint("s", i)
		for range 2 {
			if _, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello")); err != nil {
				t.Fatal(err)
			}
		}
		m := nats.NewMsg("convlog.0.session." + base64.RawURLEncoding.EncodeToString([]byte(session)) + ".frames")
		m.Header["Convlog"], m.Data = []string{header}, []byte("{\nnot a line")
		if _, err := nc.RequestMsgWithContext(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		fresh := openLog(t, jetstream.Options{Connect: servers.Connect})
		store := fresh.Store().(*jetstream.Store)
		for _, backward := range []bool{false, true} {
			events, err := suite.Collect(store.Read(t.Context(), session, eventlog.Span{Backward: backward}))
			if !errors.Is(err, eventlog.ErrCorrupt) || len(events) > 2 {
				t.Errorf("%q, backward %v: %d events, %v; want damage", header, backward, len(events), err)
			}
		}
		if _, err := fresh.Append(t.Context(), session, eventlog.Any(), event.UserMessage("more")); !errors.Is(err, eventlog.ErrCorrupt) {
			t.Errorf("%q: append: got error %v, want damage", header, err)
		}
		if _, err := repair.Session(t.Context(), fresh, session, repair.Options{InPlace: true}); err != nil {
			t.Errorf("%q: repair: %v", header, err)
			continue
		}
		events, err := suite.Collect(store.Read(t.Context(), session, eventlog.Span{}))
		if err != nil || len(events) < 2 || events[1].Seq != 2 {
			t.Errorf("%q: after the repair: %d events, %v", header, len(events), err)
		}
	}
	for info, err := range log.Store().Sessions(t.Context()) {
		if err != nil || info.Err != nil {
			t.Errorf("list: %v, %v", err, info.Err)
		}
	}
}

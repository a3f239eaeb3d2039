package jetstream_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
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
	"github.com/convlog/convlog/upkeep/repair"
	"github.com/convlog/convlog/upkeep/verify"
)

// found are the defects of a log, and the note about the watermarks.
func found(t *testing.T, options jetstream.Options) (damage []string, note string) {
	t.Helper()
	options.ReadOnly = true
	log := openLog(t, options)
	sessions := map[string]bool{}
	for d, err := range verify.Store(t.Context(), log) {
		switch {
		case err != nil:
			t.Fatal(err)
		case d.Rule == verify.RuleWatermark:
			note += d.String()
		case d.Rule == verify.RuleUnlisted:
			sessions[d.Session] = true
		default:
			damage = append(damage, d.String())
		}
	}
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		sessions[info.ID] = true
	}
	for session := range sessions {
		r, err := verify.Session(t.Context(), log, session)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range r.Defects {
			damage = append(damage, d.String())
		}
	}
	return damage, note
}

func wantWhole(t *testing.T, options jetstream.Options) {
	t.Helper()
	if damage, _ := found(t, options); len(damage) > 0 {
		t.Fatalf("a whole log has damage: %q", damage)
	}
}

func append1(t *testing.T, log *eventlog.Log, session string) error {
	t.Helper()
	_, err := log.Append(t.Context(), session, eventlog.Any(), event.UserMessage("hello"))
	return err
}

// Appends of several stores, redactions, removals and repairs leave no session behind its
// watermark.
func TestLegalChanges(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	random := rand.New(rand.NewPCG(3, 4))
	for range testsize.Pick(2, 4, 30) {
		for range 2 {
			log := openLog(t, options)
			for range 12 {
				change(t, log, random)
			}
			if err := log.Close(); err != nil { // stores the watermarks
				t.Fatal(err)
			}
		}
		wantWhole(t, options)
	}
}

// A watermark is stored after 100 appends or a second, and while another store has written a
// newer one it stays.
func TestWatermarkAge(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	nc := connect(t, servers)
	marks, err := nc.SubscribeSync("convlog.control.watermark.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	one, other := openLog(t, options), openLog(t, options)
	seq := func(session string) (n int) {
		t.Helper()
		for {
			m, err := marks.NextMsg(time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscanf(string(m.Data[strings.Index(string(m.Data), "seq="):]), "seq=%d", &n); err != nil {
				t.Fatal(err)
			}
			if m.Subject == "convlog.control.watermark.0."+session {
				return n
			}
		}
	}
	for range 100 {
		if err := append1(t, one, "s"); err != nil {
			t.Fatal(err)
		}
	}
	for n := seq("cw"); n < 100; n = seq("cw") { // a second may have passed before
	}
	if err := errors.Join(append1(t, one, "s"), append1(t, other, "s"), append1(t, other, "x")); err != nil {
		t.Fatal(err)
	}
	if n := seq("eA"); n != 1 {
		t.Errorf("the watermark of the session x has seq %d", n)
	}
	if err := errors.Join(one.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	js, err := nc.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	m, err := js.GetLastMsg("convlog_control", "convlog.control.watermark.0.cw")
	if err != nil || !strings.HasSuffix(string(m.Data), "seq=102") {
		t.Errorf("the watermark is %s, %v", m.Data, err)
	}
	wantWhole(t, options)
}

// A watermark that cannot be stored fails no append, and verify says that there is none.
func TestWatermarkRefused(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Account: natstest.Account{Users: []natstest.User{
		{Name: "admin", Password: "secret"},
		{Name: "writer", Password: "secret", Publish: []string{"convlog.0.>", "$JS.API.>"}},
	}}})
	as := func(user string) jetstream.Options {
		return jetstream.Options{Connect: func(options ...nats.Option) (*nats.Conn, error) {
			return servers.Connect(append(options, nats.UserInfo(user, "secret"))...)
		}}
	}
	admin := openLog(t, as("admin"))
	if _, err := admin.PutBlob(t.Context(), strings.NewReader("creates the log")); err != nil {
		t.Fatal(err)
	}
	writer := openLog(t, as("writer"))
	for range 3 {
		if err := append1(t, writer, "s"); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if damage, note := found(t, as("admin")); len(damage) > 0 || !strings.Contains(note, "no watermark") || !strings.Contains(note, "sessions without one: 1") {
		t.Errorf("damage %q, note %q", damage, note)
	}
}

// A redaction of events that a fork shares works where nobody can show that the servers sync,
// and the places that may keep the bytes say so.
func TestRedactUnsyncedFork(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	log := openLog(t, jetstream.Options{Connect: servers.Connect})
	if err := errors.Join(append1(t, log, "s"), append1(t, log, "s")); err != nil {
		t.Fatal(err)
	}
	events, err := suite.Collect(log.Read(t.Context(), "s", eventlog.All()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "f", eventlog.New(), suite.ForkOf("s", &events[1])); err != nil {
		t.Fatal(err)
	}
	report, err := erase.Redact(t.Context(), log, "s", []int64{1}, erase.RedactOptions{Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Retained) == 0 || !strings.Contains(report.Retained[0].Where, "sync") {
		t.Errorf("places that may keep bytes: %+v", report.Retained)
	}
	for e, err := range log.Read(t.Context(), "f", eventlog.Between(1, 1)) {
		if err != nil || !e.Redacted() {
			t.Errorf("the fork has %s, %v", e.Line(), err)
		}
	}
}

// Repair accepts the loss of the end of a session, and rm the loss of a whole one. Then the
// session goes on. Messages that took the place of lost ones do not hide the loss.
func TestAcceptLoss(t *testing.T) {
	t.Parallel()
	servers := natstest.Shared(t, false)
	options := jetstream.Options{Connect: servers.Connect}
	log := openLog(t, options)
	for range 5 {
		if err := errors.Join(append1(t, log, "s"), append1(t, log, "x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	request(t, servers, "STREAM.PURGE.convlog_0", map[string]string{"filter": "convlog.0.session.eA.frames"})
	d := damaged{servers: servers}
	request(t, servers, "STREAM.MSG.DELETE.convlog_0", map[string]any{"seq": d.last(t, "convlog.0.session.cw.frames")})
	log = openLog(t, options)
	for _, session := range []string{"s", "x"} {
		if err := append1(t, log, session); !errors.Is(err, eventlog.ErrCorrupt) || !strings.Contains(err.Error(), "event 5") {
			t.Errorf("append to session %q after the loss: %v", session, err)
		}
	}
	if _, err := log.Head(t.Context(), "x"); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Errorf("the head of a lost session: %v", err)
	}
	if events, err := suite.Collect(log.Read(t.Context(), "s", eventlog.All())); !errors.Is(err, eventlog.ErrCorrupt) || len(events) != 4 {
		t.Errorf("read %d events of the session, and %v", len(events), err)
	}
	if damage, _ := found(t, options); len(damage) < 2 {
		t.Errorf("verify finds %q", damage)
	}
	if _, err := repair.Session(t.Context(), log, "s", repair.Options{InPlace: true}); err != nil {
		t.Fatal(err)
	}
	if err := erase.Remove(t.Context(), log, "x"); err != nil {
		t.Fatal(err)
	}
	for _, session := range []string{"s", "x"} {
		if err := append1(t, log, session); err != nil {
			t.Errorf("append to session %q after the repair: %v", session, err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, options)
}

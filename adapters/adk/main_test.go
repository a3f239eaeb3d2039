package adk_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/internal/pgtest"
	_ "github.com/convlog/convlog/internal/testsize" // folders of tests are in memory
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/sqlite"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerEnv); dir != "" {
		write(dir)
		return
	}
	code := m.Run()
	if err := natstest.CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// opener opens a log over the same store each time.
type opener func() (eventlog.Store, error)

// stores makes new stores.
var stores = map[string]func(t testing.TB) opener{
	"jsonl": func(t testing.TB) opener {
		dir := t.TempDir()
		return func() (eventlog.Store, error) { return jsonl.New(dir), nil }
	},
	"sqlite": func(t testing.TB) opener {
		file := filepath.Join(t.TempDir(), "s.db")
		return func() (eventlog.Store, error) { return sqlite.New(file), nil }
	},
	"postgres": func(t testing.TB) opener {
		dsn := pgtest.DSN(t)
		return func() (eventlog.Store, error) { return postgres.New(dsn) }
	},
	"jetstream": func(t testing.TB) opener {
		servers := natstest.Shared(t, false)
		options := jetstream.Options{Prefix: fmt.Sprint("log", logs.Add(1)), Replicas: 1, Synced: true, Connect: servers.Connect}
		return func() (eventlog.Store, error) { return jetstream.New("", options) }
	},
}

var logs atomic.Int64

func eachStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *eventlog.Log)) {
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newLog := store(t)
			test(t, func(t testing.TB) *eventlog.Log { return openLog(t, newLog) })
		})
	}
}

func openLog(t testing.TB, open opener) *eventlog.Log {
	t.Helper()
	store, err := open()
	if err != nil {
		t.Fatal(err)
	}
	log := eventlog.Open(store)
	t.Cleanup(func() { log.Close() })
	return log
}

func jsonlLog(t testing.TB) *eventlog.Log { return openLog(t, stores["jsonl"](t)) }

// create makes the session s1 of the user ann of the app shop.
func create(t testing.TB, s session.Service, state map[string]any) session.Session {
	t.Helper()
	created, err := s.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ann", SessionID: "s1", State: state})
	if err != nil {
		t.Fatal(err)
	}
	return created.Session
}

func get(t testing.TB, s session.Service, newest int) session.Session {
	t.Helper()
	return getOf(t, s, "ann", "s1", newest)
}

func getOf(t testing.TB, s session.Service, user, id string, newest int) session.Session {
	t.Helper()
	got, err := s.Get(t.Context(), &session.GetRequest{AppName: "shop", UserID: user, SessionID: id, NumRecentEvents: newest})
	if err != nil {
		t.Fatal(err)
	}
	return got.Session
}

func appendEvents(t testing.TB, s session.Service, to session.Session, events ...*session.Event) {
	t.Helper()
	for _, e := range events {
		if err := s.AppendEvent(t.Context(), to, e); err != nil {
			t.Fatal(err)
		}
	}
}

func says(text string) *session.Event {
	e := session.NewEvent(context.Background(), "inv")
	e.Author, e.Content = "user", genai.NewContentFromText(text, genai.RoleUser)
	return e
}

func sets(text string, delta map[string]any) *session.Event {
	e := says(text)
	e.Actions.StateDelta = delta
	return e
}

func texts(s session.Session) (all []string) {
	for e := range s.Events().All() {
		if e.Content == nil || len(e.Content.Parts) == 0 {
			all = append(all, "")
			continue
		}
		all = append(all, e.Content.Parts[0].Text)
	}
	return all
}

func value(t testing.TB, s session.Session, key string) any {
	t.Helper()
	v, err := s.State().Get(key)
	if err != nil {
		t.Errorf("state %q: %v", key, err)
	}
	return v
}

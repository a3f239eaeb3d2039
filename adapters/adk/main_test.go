package adk_test

import (
	"context"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/convlog/convlog/internal/adaptertest"
)

func TestMain(m *testing.M) { adaptertest.Main(m, write) }

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

package projection_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// cart is a custom state of version 2. In version 1 the items were called things;
// version 0 was a list.
type cart struct {
	Items []string       `json:"items"`
	Total jsontext.Value `json:"total,omitzero"`
}

var cartMigrations = projection.Migrations{
	0: func(v jsontext.Value) (jsontext.Value, error) {
		return projection.ApplyPatch(jsontext.Value(`{}`), jsontext.Value(`[{"op":"add","path":"/things","value":`+string(v)+`}]`))
	},
	1: func(v jsontext.Value) (jsontext.Value, error) {
		return projection.ApplyPatch(v, jsontext.Value(`[{"op":"move","from":"/things","path":"/items"}]`))
	},
}

func TestTypedStates(t *testing.T) {
	broken := errors.New("broken")
	for _, tt := range []struct {
		name       string
		version    int // of the state; the program knows 2
		state      string
		migrations projection.Migrations
		want       cart
		err        error
	}{
		{"of the version", 2, `{"items":["tea"]}`, cartMigrations, cart{Items: []string{"tea"}}, nil},
		{"of the version, nothing to migrate with", 2, `{"items":["tea"]}`, nil, cart{Items: []string{"tea"}}, nil},
		{"digits", 2, `{"items":null,"total":9007199254740993.10}`, nil, cart{Total: jsontext.Value("9007199254740993.10")}, nil},
		{"one version older", 1, `{"things":["tea"]}`, cartMigrations, cart{Items: []string{"tea"}}, nil},
		{"two versions older", 0, `["tea","jam"]`, cartMigrations, cart{Items: []string{"tea", "jam"}}, nil},
		{"null", 2, `null`, nil, cart{}, nil},
		{"null of an older version", 1, `null`, cartMigrations, cart{}, nil},
		{"newer", 3, `{"items":["tea"]}`, cartMigrations, cart{}, new(event.VersionError)},
		{"a newer null", 3, `null`, cartMigrations, cart{}, new(event.VersionError)},
		{"a migration is missing", 0, `["tea"]`, projection.Migrations{1: cartMigrations[1]}, cart{}, projection.ErrStateShape},
		{"the last migration is missing", 0, `["tea"]`, projection.Migrations{0: cartMigrations[0]}, cart{}, projection.ErrStateShape},
		{"a migration fails", 1, `{}`, projection.Migrations{1: func(jsontext.Value) (jsontext.Value, error) { return nil, broken }}, cart{}, broken},
		{"a migration makes another shape", 1, `{}`, projection.Migrations{1: func(jsontext.Value) (jsontext.Value, error) { return jsontext.Value(`[`), nil }},
			cart{}, projection.ErrStateShape},
		{"a member that the type lacks", 2, `{"items":["tea"],"color":"red"}`, nil, cart{}, projection.ErrStateShape},
		{"a member of another type", 2, `{"items":"tea"}`, nil, cart{}, projection.ErrStateShape},
		{"a member in other letters", 2, `{"Items":["tea"]}`, nil, cart{}, projection.ErrStateShape},
		{"a member of another shape behind a good one", 2, `{"items":["tea"],"total":1,"x":[]}`, nil, cart{}, projection.ErrStateShape},
	} {
		t.Run(tt.name, func(t *testing.T) {
			garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
				g := &garden.Garden{T: t, Log: log}
				g.Append("s", event.UserMessage("hello"))
				_, _, err := projection.SetState(garden.Bg, log, "s", "cart", tt.version, jsontext.Value(tt.state))
				g.Allow(err)
				view, err := projection.Load(garden.Bg, log, "s", projection.Custom())
				g.Allow(err)
				got, err := projection.Typed[cart](view.State.Get("cart"), 2, tt.migrations)
				if newer := new(event.VersionError); errors.As(tt.err, &newer) {
					if !errors.As(err, &newer) || newer.Got != 3 || newer.Max != 2 {
						t.Errorf("%v", err)
					}
				} else if !errors.Is(err, tt.err) {
					t.Errorf("%v, want %v", err, tt.err)
				}
				garden.Same(t, "state", tt.want, got)
				garden.Same(t, "stored state", tt.state, string(view.State.Get("cart").Raw()))
			})
		})
	}
}

func TestAStateWithoutPatches(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		g := &garden.Garden{T: t, Log: log}
		g.Append("s", event.UserMessage("hello"))
		view, err := projection.Load(garden.Bg, log, "s", projection.Custom())
		g.Allow(err)
		got, err := projection.Typed[cart](view.State.Get("cart"), 2, nil)
		g.Allow(err)
		garden.Same(t, "state", cart{}, got)
		garden.Same(t, "document", "null", string(view.State.Get("cart").Raw()))
	})
}

// The version of a state is the version in the last patch that has one. A snapshot
// keeps it.
func TestTheVersionOfAState(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		g := &garden.Garden{T: t, Log: log}
		g.Append("s", event.UserMessage("hello"))
		patch := func(version int, text string) {
			t.Helper()
			_, _, err := projection.Patch(garden.Bg, log, "s", event.CustomPatch{Name: "cart", StateVersion: version, Patch: []byte(text)})
			g.Allow(err)
		}
		patch(1, `[{"op":"add","path":"","value":{"things":["tea"]}}]`)
		patch(0, `[{"op":"add","path":"/things/-","value":"jam"}]`)
		for _, snapshot := range []bool{false, true} {
			if snapshot {
				g.Snapshot("s", projection.Of("", projection.Custom()), true)
			}
			view, err := projection.Load(garden.Bg, log, "s", projection.Custom())
			g.Allow(err)
			state := view.State.Get("cart")
			got, err := projection.Typed[cart](state, 2, cartMigrations)
			g.Allow(err)
			if state.Version != 1 {
				t.Errorf("version %d", state.Version)
			}
			garden.Same(t, "state", cart{Items: []string{"tea", "jam"}}, got)
		}
		patch(2, `[{"op":"move","from":"/things","path":"/items"}]`)
		view, err := projection.Load(garden.Bg, log, "s", projection.Custom())
		g.Allow(err)
		got, err := projection.Typed[cart](view.State.Get("cart"), 2, nil)
		g.Allow(err)
		garden.Same(t, "state", cart{Items: []string{"tea", "jam"}}, got)
	})
}

// A state is incomplete after a patch is redacted, until a patch replaces the whole
// state.
func TestAStateOfARedactedPatch(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		g := &garden.Garden{T: t, Log: log}
		g.Append("s", event.UserMessage("hello"))
		add := func(text string) {
			g.Append("s", event.New(event.CustomPatch{Name: "n", Patch: []byte(text)}))
		}
		is := func(want projection.CustomState, raw string) {
			t.Helper()
			view, err := projection.Load(garden.Bg, log, "s", projection.Custom())
			g.Allow(err)
			got := view.State.Get("n")
			garden.Same(t, "document", raw, string(got.Raw()))
			if got.Incomplete != want.Incomplete || got.Skipped != want.Skipped {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		add(`[{"op":"add","path":"","value":{"a":1}}]`) // 2
		add(`[{"op":"add","path":"/b","value":{}}]`)    // 3
		add(`[{"op":"add","path":"/b/c","value":1}]`)   // 4
		add(`[{"op":"replace","path":"/a","value":2}]`) // 5
		is(projection.CustomState{}, `{"a":2,"b":{"c":1}}`)
		_, err := erase.Redact(garden.Bg, log, "s", []int64{3}, erase.RedactOptions{Reason: "test"})
		g.Allow(err)
		is(projection.CustomState{Incomplete: true, Skipped: 1}, `{"a":2}`)
		// A patch that does not apply now is not written either.
		_, _, err = projection.Patch(garden.Bg, log, "s", event.CustomPatch{Name: "n", Patch: []byte(`[{"op":"remove","path":"/b"}]`)})
		if !errors.Is(err, projection.ErrNoTarget) {
			t.Errorf("patched with %v", err)
		}
		is(projection.CustomState{Incomplete: true, Skipped: 1}, `{"a":2}`)
		_, _, err = projection.SetState(garden.Bg, log, "s", "n", 0, map[string]int{"a": 3})
		g.Allow(err)
		is(projection.CustomState{}, `{"a":3}`)
	})
}

// SetState copies JSON values unchanged and encodes bytes.
func TestStatesOfJSON(t *testing.T) {
	garden.OnStores(t, func(t *testing.T, log *eventlog.Log) {
		const doc = `{"b":1.50,"a":[true]}`
		begin := event.UserMessage("begin")
		if _, err := log.Append(garden.Bg, "s", eventlog.New(), begin); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			value any
			want  string
		}{
			{jsontext.Value(doc), doc},
			{json.RawMessage(doc), doc},
			{[]byte("a\x00"), `"YQA="`},
			{[]byte(doc), `"eyJiIjoxLjUwLCJhIjpbdHJ1ZV19"`},
			{map[string]any{"raw": json.RawMessage(doc)}, `{"raw":` + doc + `}`},
		} {
			state, _, err := projection.SetState(garden.Bg, log, "s", "n", 0, tt.value)
			if err != nil || string(state.Raw()) != tt.want {
				t.Errorf("%T becomes %s (%v), want %s", tt.value, state.Raw(), err, tt.want)
			}
		}
	})
}

package flow_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/upkeep/erase"
)

func named(names ...string) (list []event.Artifact) {
	for _, name := range names {
		list = append(list, event.Artifact{Name: name, Parts: []event.Part{event.Text("text of " + name)}})
	}
	return list
}

func names(list []event.Artifact) (names []string) {
	for _, a := range list {
		names = append(names, a.Name+":"+a.Description)
	}
	return names
}

// SetArtifacts replaces all artifacts, in the order that it gets, also when the turn is run
// again.
func TestSetArtifacts(t *testing.T) {
	fail := true
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		if err := tn.SetArtifacts(named("a", "b", "")...); err != nil {
			return err
		}
		if _, err := flow.Do(ctx, tn, flow.Effect{Name: "one"}, func(context.Context) (int, error) { return 1, nil }); err != nil {
			return err
		}
		list := tn.Artifacts()
		list[0].Description = "kept"
		if err := tn.SetArtifacts(append([]event.Artifact{{Name: "c"}, list[2]}, list[0])...); err != nil {
			return err
		}
		if got := names(tn.Artifacts()); !slices.Equal(got, []string{"c:", ":", "a:kept"}) {
			t.Errorf("in the turn: %q", got)
		}
		_, err := flow.Do(ctx, tn, flow.Effect{Name: "two", Class: event.EffectPure}, func(context.Context) (int, error) {
			if fail {
				return 0, errors.New("later")
			}
			return 1, nil
		})
		return err
	}}
	in := flow.Text("go")
	in.ID = "i"
	if _, err := a.Run(t.Context(), "s", in); err == nil {
		t.Fatal("no error")
	}
	fail = false
	out, err := a.Run(t.Context(), "s", in)
	if err != nil || !slices.Equal(names(out.Artifacts), []string{"c:", ":", "a:kept"}) || out.Artifacts[1].Parts[0].Text != "text of " {
		t.Fatalf("%v %+v", err, out.Artifacts)
	}
	a.Turn = func(_ context.Context, tn *flow.Turn[notes]) error { return tn.SetArtifacts() }
	if out, err = a.Run(t.Context(), "s", flow.Text("none")); err != nil || len(out.Artifacts) != 0 {
		t.Fatalf("%v %+v", err, out.Artifacts)
	}
}

// An artifact keeps its parts, with the blobs that they refer to, and its metadata, into the
// next session too.
func TestPartsOfAnArtifact(t *testing.T) {
	log := openLog(t)
	picture := []byte("\x89PNG")
	a := &flow.Agent[notes]{Name: "a", Log: log, Turn: func(ctx context.Context, tn *flow.Turn[notes]) error {
		ref, err := log.PutBlob(ctx, bytes.NewReader(picture))
		if err != nil {
			return err
		}
		return tn.SetArtifact(ctx, event.Artifact{Name: "report", Parts: []event.Part{event.Text("A picture:"), event.Image("image/png", ref)},
			Extra: jsontext.Value(`{"language":"en"}`)}, nil)
	}}
	out, err := a.Run(t.Context(), "s", flow.Text("go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := erase.Collect(t.Context(), log, erase.CollectOptions{Grace: -1}); err != nil {
		t.Fatal(err)
	}
	out.Session = ""
	session, err := a.Begin(t.Context(), out.Content)
	if err != nil {
		t.Fatal(err)
	}
	a.Turn = func(context.Context, *flow.Turn[notes]) error { return nil }
	if out, err = a.Run(t.Context(), session, flow.Text("again")); err != nil || len(out.Artifacts) != 1 {
		t.Fatalf("%v %+v", err, out.Artifacts)
	}
	got := out.Artifacts[0]
	if len(got.Parts) != 2 || got.Parts[0].Text != "A picture:" || string(got.Extra) != `{"language":"en"}` {
		t.Fatalf("%+v", got)
	}
	body, err := log.OpenBlob(t.Context(), got.Parts[1].Blob.Blob)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if read, err := io.ReadAll(body); err != nil || !bytes.Equal(read, picture) {
		t.Fatalf("%v %q", err, read)
	}
}

package flowtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/upkeep/erase"
)

// fakeTB is a testing.TB that keeps the errors.
type fakeTB struct {
	testing.TB
	errors []string
}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// asked is a turn that asks a model once.
func asked(system string) turnFunc {
	return func(ctx context.Context, x *flow.Turn[shop], ran func()) error {
		m := always(func() (event.Message, error) { ran(); return said("Hello."), nil })
		_, err := x.Model(ctx, m, flow.Request{System: strings.ReplaceAll(system, "NOW", x.Now().Format("05.000000"))})
		return err
	}
}

func recorded(t *testing.T, system string) (s *stage, path string) {
	s, path = newStage(t, asked(system)), filepath.Join(t.TempDir(), "hello.jsonl")
	flowtest.Record(t, s.agent, path, session, func(ctx context.Context, a *flow.Agent[shop]) error {
		_, err := a.Run(ctx, session, flow.Text("Hi."))
		_, err2 := a.Run(ctx, session, flow.Text("Hi again."))
		return errors.Join(err, err2)
	})
	if s.ran != 2 {
		t.Fatalf("the model was asked %d times", s.ran)
	}
	return s, path
}

// replayFile replays a file with a fake test, and returns its errors.
func replayFile(t *testing.T, s *stage, system, path string, o flowtest.Options) (flowtest.Result, string) {
	fake := &fakeTB{TB: t}
	r := flowtest.Replay(fake, s.of(asked(system), func() { t.Error("the model was asked") }), path, o)
	return r, strings.Join(fake.errors, "\n")
}

// A recording in a file has prompts. A changed prompt fails with the difference, and is
// approved with Update.
func TestARecordingInAFile(t *testing.T) {
	s, path := recorded(t, "Be kind.\nBe brief.")
	if _, errs := replayFile(t, s, "Be kind.\nBe brief.", path, flowtest.Options{}); errs != "" {
		t.Fatal(errs)
	}
	_, errs := replayFile(t, s, "Be kind.\nBe loud.", path, flowtest.Options{})
	for _, want := range []string{"step_started, ", "hello.jsonl:", "effect 0, model", "the request differs", "    Be kind.\n", "-   Be brief.\n", "+   Be loud."} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is missing in\n%s", want, errs)
		}
	}
	if _, errs := replayFile(t, s, "Be loud.", path, flowtest.Options{Update: true}); errs != "" {
		t.Fatal(errs)
	}
	if _, errs := replayFile(t, s, "Be loud.", path, flowtest.Options{}); errs != "" {
		t.Error(errs)
	}
	if _, errs := replayFile(t, s, "Be kind.\nBe brief.", path, flowtest.Options{}); !strings.Contains(errs, "-   Be loud.") {
		t.Errorf("the prompt before the update: %s", errs)
	}
}

// Normalize removes what may change from both sides.
func TestNormalize(t *testing.T) {
	date := regexp.MustCompile(`\d+`)
	o := flowtest.Options{Normalize: func(text string) string { return date.ReplaceAllString(text, "N") }}
	s, path := recorded(t, "It is 2026.")
	if _, errs := replayFile(t, s, "It is 2027.", path, o); errs != "" {
		t.Error(errs)
	}
	if _, errs := replayFile(t, s, "It was 2027.", path, o); !strings.Contains(errs, "-   It is N.") || !strings.Contains(errs, "+   It was N.") {
		t.Error(errs)
	}
	if err := os.Remove(strings.TrimSuffix(path, ".jsonl") + ".prompts.json"); err != nil {
		t.Fatal(err)
	}
	if r, errs := replayFile(t, s, "It is 2027.", path, o); errs != "" || r.Unchecked != 2 {
		t.Errorf("without prompts: %d, %s", r.Unchecked, errs)
	}
	if _, errs := replayFile(t, s, "It is 2027.", path, flowtest.Options{}); !strings.Contains(errs, "only a digest") {
		t.Errorf("without prompts and Normalize: %s", errs)
	}
}

// The time of a turn is the recorded time.
func TestNowIsRecorded(t *testing.T) {
	s, path := recorded(t, "It is NOW.")
	if _, errs := replayFile(t, s, "It is NOW.", path, flowtest.Options{}); errs != "" {
		t.Error(errs)
	}
}

// A rewind into a turn is not replayed, and says so.
func TestARewindIntoATurnIsRefused(t *testing.T) {
	s := newStage(t, steps)
	s.must(s.run("Go."))
	_, err := s.log.Append(t.Context(), session, eventlog.Any(), event.New(event.HeadMove{To: 8}))
	s.must(err)
	s.must(s.run())
	if _, err := flowtest.Run(t.Context(), s.agent, s.log, session); !errors.Is(err, flowtest.ErrNotServed) {
		t.Error(err)
	}
}

// A recording without the content of an input or of a result is refused.
func TestErasedContentIsRefused(t *testing.T) {
	for name, erased := range map[string]event.Type{"an input": event.MessageAdded, "a result": event.EffectCompleted, "a change of the state": event.CustomPatched} {
		s := newStage(t, steps)
		s.must(s.run("Go."))
		for e, err := range s.log.Read(t.Context(), session, eventlog.All()) {
			s.must(err)
			if e.Type.Name() == erased {
				_, err := erase.Redact(t.Context(), s.log, session, []int64{e.Seq})
				s.must(err)
				break
			}
		}
		if _, err := flowtest.Run(t.Context(), s.agent, s.log, session); !errors.Is(err, flowtest.ErrNotServed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

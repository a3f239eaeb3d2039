package adk_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
	"google.golang.org/genai"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/fork"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/erase"
)

// clerk is a model that looks up a parcel, and then answers with what it has seen.
type clerk struct{ seen *[]string }

func (clerk) Name() string { return "gemini-2.5-flash" }

func (m clerk) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	*m.seen = nil
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				*m.seen = append(*m.seen, "call "+p.FunctionCall.Name)
			case p.FunctionResponse != nil:
				*m.seen = append(*m.seen, fmt.Sprint("result ", p.FunctionResponse.Response["result"]))
			default:
				*m.seen = append(*m.seen, c.Role+" "+p.Text)
			}
		}
	}
	usage := &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 1000, CachedContentTokenCount: 200, CandidatesTokenCount: 100}
	answer := &model.LLMResponse{ModelVersion: m.Name(), UsageMetadata: usage, Content: genai.NewContentFromText(fmt.Sprint("Answer after ", len(*m.seen), "."), genai.RoleModel)}
	if last := (*m.seen)[len(*m.seen)-1]; strings.HasPrefix(last, "user ") {
		answer.Content = genai.NewContentFromFunctionCall("find", map[string]any{"text": strings.TrimPrefix(last, "user ")}, genai.RoleModel)
	}
	return func(yield func(*model.LLMResponse, error) bool) { yield(answer, nil) }
}

type findArgs struct {
	Text string `json:"text"`
}

// ask runs one turn of the clerk, and returns what the model saw last and the answers.
func ask(t testing.TB, log *eventlog.Log, user, id, question string) (seen, answers []string) {
	t.Helper()
	find, err := functiontool.New(functiontool.Config{Name: "find", Description: "Find a parcel."}, func(ctx agent.Context, in findArgs) (map[string]any, error) {
		if err := ctx.State().Set("asked", in.Text); err != nil {
			return nil, err
		}
		return map[string]any{"result": "parcel of " + in.Text}, ctx.State().Set("app:count", 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	desk, err := llmagent.New(llmagent.Config{Name: "desk", Model: clerk{&seen}, Tools: []tool.Tool{find}})
	if err != nil {
		t.Fatal(err)
	}
	s := adk.New(log)
	r, err := runner.New(runner.Config{AppName: "shop", Agent: desk, SessionService: s.Sessions, ArtifactService: s.Artifacts, MemoryService: s.Memory, AutoCreateSession: true})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range r.Run(t.Context(), user, id, genai.NewContentFromText(question, genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Content != nil && e.Content.Parts[0].Text != "" {
			answers = append(answers, e.Content.Parts[0].Text)
		}
	}
	return seen, answers
}

// An agent of ADK continues after a restart, and its messages, calls and costs are those of any agent.
func TestAnAgentOverTheLog(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		ask(t, open(t), "ann", "s1", "shoes")
		seen, answers := ask(t, open(t), "ann", "s1", "hats")
		want := []string{"user shoes", "call find", "result parcel of shoes", "model Answer after 3.", "user hats", "call find", "result parcel of hats"}
		if !slices.Equal(seen, want) || !slices.Equal(answers, []string{"Answer after 7."}) {
			t.Errorf("the model saw %q and answered %q", seen, answers)
		}
		log := open(t)
		v, err := projection.Load(t.Context(), log, "adk/shop/ann/s1", projection.Usage())
		if err != nil || v.State.Total.Responses != 4 || v.State.Total.Usage.InputTokens != 4*800 || v.State.Total.Usage.CacheReadTokens != 4*200 {
			t.Errorf("usage %+v, %v", v.State.Total, err)
		}
		pending, err := projection.LoadPending(t.Context(), log, "adk/shop/ann/s1")
		if err != nil || len(pending.Calls) != 0 {
			t.Errorf("pending calls %v, %v", pending.Calls, err)
		}
	})
}

// A fork at a turn is a session of ADK, and runs on.
func TestAForkRunsOn(t *testing.T) {
	log := adaptertest.Folder(t)
	ask(t, log, "ann", "s1", "shoes")
	ask(t, log, "ann", "s1", "hats")
	ask(t, log, "ben", "s1", "coats")
	for _, id := range []string{"", "adk/shop/ann/s2"} {
		f, err := fork.At(t.Context(), log, "adk/shop/ann/s1", fork.BeforeTurn(1), fork.Options{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(f.ID, "adk/shop/ann/")
		seen, _ := ask(t, log, "ann", name, "gloves")
		want := []string{"user shoes", "call find", "result parcel of shoes", "model Answer after 3.", "user gloves", "call find", "result parcel of gloves"}
		if !slices.Equal(seen, want) {
			t.Errorf("the model saw %q", seen)
		}
		if got := getOf(t, adk.New(log).Sessions, "ann", name, 0); value(t, got, "asked") != "gloves" || got.ID() != name {
			t.Errorf("fork %q has the state %v", got.ID(), value(t, got, "asked"))
		}
		if _, err := adk.New(log).Sessions.Get(t.Context(), &session.GetRequest{AppName: "shop", UserID: "ben", SessionID: name}); err == nil {
			t.Error("the fork is a session of another user")
		}
		deep, err := fork.At(t.Context(), log, f.ID, fork.Head())
		if err != nil {
			t.Fatal(err)
		}
		for user, want := range map[string][]string{"ann": {"s1", name, deep.ID}, "ben": {"s1"}} {
			list, err := adk.New(log).Sessions.List(t.Context(), &session.ListRequest{AppName: "shop", UserID: user})
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range want {
				if !slices.ContainsFunc(list.Sessions, func(s session.Session) bool { return s.ID() == id && s.UserID() == user }) {
					t.Errorf("%s is not listed for %s", id, user)
				}
			}
		}
	}
	if got := texts(get(t, adk.New(log).Sessions, 0)); len(got) != 8 {
		t.Errorf("the original has %q", got)
	}
}

// After a rewind, the session of ADK is the active path.
func TestARewindRunsOn(t *testing.T) {
	log := adaptertest.Folder(t)
	ask(t, log, "ann", "s1", "shoes")
	ask(t, log, "ann", "s1", "hats")
	if _, err := fork.Rewind(t.Context(), log, "adk/shop/ann/s1", fork.BeforeTurn(1)); err != nil {
		t.Fatal(err)
	}
	if got := get(t, adk.New(log).Sessions, 2); value(t, got, "asked") != "shoes" || texts(got)[1] != "Answer after 3." {
		t.Errorf("after the rewind: %q", texts(got))
	}
	if seen, _ := ask(t, log, "ann", "s1", "gloves"); slices.Contains(seen, "user hats") {
		t.Errorf("the model saw %q", seen)
	}
}

// Redacted content is gone, and the agent runs on.
func TestARedactedSessionRunsOn(t *testing.T) {
	log := adaptertest.Folder(t)
	ask(t, log, "ann", "s1", "shoes")
	for seq := int64(1); seq < 100; seq++ {
		if _, err := log.Event(t.Context(), "adk/shop/ann/s1", seq); err != nil {
			break
		}
		if _, err := erase.Redact(t.Context(), log, "adk/shop/ann/s1", []int64{seq}, erase.RedactOptions{Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		if seq == 3 { // the first events are of the session, and the question
			seen, _ := ask(t, log, "ann", "s1", "hats")
			if seen[0] != "user [redacted]" || seen[len(seen)-1] != "result parcel of hats" {
				t.Errorf("the model saw %q", seen)
			}
		}
	}
	if _, err := adk.New(log).Sessions.List(t.Context(), &session.ListRequest{AppName: "shop"}); err != nil {
		t.Error(err)
	}
	seen, _ := ask(t, log, "ann", "s1", "gloves")
	if strings.Contains(strings.Join(seen, " "), "shoes") || seen[len(seen)-1] != "result parcel of gloves" {
		t.Errorf("the model saw %q", seen)
	}
	if got := get(t, adk.New(log).Sessions, 0); value(t, got, "asked") != "gloves" {
		t.Errorf("after the redaction of the state: %v", value(t, got, "asked"))
	}
}

// wrapped is a session of another type than the service returns.
type wrapped struct{ session.Session }

// A change of the state is stored after the state is erased, whatever session the caller has.
func TestAnErasedStateBeginsAgain(t *testing.T) {
	for _, how := range []string{"stale", "wrapped", "listed"} {
		log := adaptertest.Folder(t)
		s := adk.New(log).Sessions
		to := create(t, s, map[string]any{"a": 1})
		other := get(t, s, 0)
		if _, err := erase.Redact(t.Context(), log, "adk/shop/ann/s1", []int64{2, 3}, erase.RedactOptions{Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		switch how {
		case "wrapped":
			to = wrapped{to}
		case "listed":
			list, err := s.List(t.Context(), &session.ListRequest{AppName: "shop", UserID: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			to = list.Sessions[0]
		}
		appendEvents(t, s, to, sets("one", map[string]any{"k": 1}))
		appendEvents(t, s, other, sets("two", map[string]any{"l": 2}))
		if got := get(t, s, 0); value(t, got, "k") != 1.0 || value(t, got, "l") != 2.0 {
			t.Errorf("%s: the state is %v", how, maps.Collect(got.State().All()))
		}
	}
}

// A message that another program appends is an event of ADK.
func TestMessagesOfOtherWriters(t *testing.T) {
	log := adaptertest.Folder(t)
	ask(t, log, "ann", "s1", "shoes")
	if _, err := log.Append(t.Context(), "adk/shop/ann/s1", eventlog.Any(), userMessage("by hand"), assistantMessage("noted")); err != nil {
		t.Fatal(err)
	}
	seen, _ := ask(t, log, "ann", "s1", "hats")
	if !slices.Contains(seen, "user by hand") || !slices.Contains(seen, "model noted") {
		t.Errorf("the model saw %q", seen)
	}
}

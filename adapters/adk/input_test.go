package adk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/adaptertest"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/upkeep/verify"
)

// everyPart has each kind of part, and parts of no known kind.
func everyPart() []*genai.Part {
	no := false
	return []*genai.Part{
		{Text: "plain"}, {Text: "thinking", Thought: true, ThoughtSignature: []byte("sig")}, {Text: "signed", ThoughtSignature: []byte{0, 255}},
		{Text: "unsigned thought", Thought: true}, {},
		{Thought: true}, {ThoughtSignature: []byte("alone")},
		{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "look", Args: map[string]any{"n": 1.5, "deep": map[string]any{"a": []any{"<b>", nil}}}}, ThoughtSignature: []byte("s")},
		{FunctionCall: &genai.FunctionCall{ID: "c2", Name: "none"}}, {FunctionCall: &genai.FunctionCall{ID: "c3", Name: "empty", Args: map[string]any{}}},
		{FunctionCall: &genai.FunctionCall{Name: "no id", Args: map[string]any{"x": "y"}}}, {FunctionCall: &genai.FunctionCall{}},
		{FunctionCall: &genai.FunctionCall{ID: "c4", Name: "more", WillContinue: &no}},
		{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "look", Response: map[string]any{"output": "found"}}},
		{FunctionResponse: &genai.FunctionResponse{ID: "c2", Name: "none", Response: map[string]any{"error": "no"}, Scheduling: "SILENT"}},
		{FunctionResponse: &genai.FunctionResponse{ID: "c9", Name: "unknown"}}, {FunctionResponse: &genai.FunctionResponse{Name: "no id"}},
		{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte("png"), DisplayName: "a.png"}, VideoMetadata: &genai.VideoMetadata{}},
		{InlineData: &genai.Blob{MIMEType: "audio/wav", Data: bytes.Repeat([]byte("w"), 20<<10)}},
		{InlineData: &genai.Blob{MIMEType: "application/pdf"}},
		{FileData: &genai.FileData{FileURI: "gs://b/f.mp4", MIMEType: "video/mp4", DisplayName: "f"}}, {FileData: &genai.FileData{}},
		{ExecutableCode: &genai.ExecutableCode{Code: "print(1)", Language: "PYTHON"}}, {CodeExecutionResult: &genai.CodeExecutionResult{Output: "1", Outcome: "OUTCOME_OK"}},
		{Text: "with metadata", PartMetadata: map[string]any{"k": "v"}},
	}
}

func everyEvent() (all []*session.Event) {
	at := time.Date(2025, 3, 1, 10, 0, 0, 123456789, time.FixedZone("X", 3600))
	parts := everyPart()
	for i, p := range parts {
		for _, role := range []string{genai.RoleUser, genai.RoleModel, "", "odd"} {
			all = append(all, &session.Event{Author: "desk", Timestamp: at.Add(time.Duration(i)), LLMResponse: model.LLMResponse{Content: &genai.Content{Role: role, Parts: []*genai.Part{p}}}})
		}
	}
	for _, c := range []*genai.Content{nil, {}, {Role: "model"}, {Role: "model", Parts: []*genai.Part{nil}}, {Role: "model", Parts: parts}, {Role: "user", Parts: parts[:8]}} {
		all = append(all, &session.Event{Author: "user", LLMResponse: model.LLMResponse{Content: c}})
	}
	usage := &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 10, CachedContentTokenCount: 4, CandidatesTokenCount: 3, ThoughtsTokenCount: 2}
	all = append(all,
		&session.Event{Author: "desk", LLMResponse: model.LLMResponse{UsageMetadata: usage, ModelVersion: "gemini-2.5-pro", ErrorCode: "500", ErrorMessage: "down"}},
		&session.Event{Author: "desk", InvocationID: "inv", Branch: "a.b", IsolationScope: "s", Routes: []string{"r"}, LongRunningToolIDs: []string{"c1"},
			Output: map[string]any{"x": []any{1.0, "two"}}, RequestedInput: &session.RequestInput{InterruptID: "i", Payload: "p"},
			NodeInfo: &session.NodeInfo{Path: "p", MessageAsOutput: true, OutputFor: []string{"q"}},
			Actions: session.EventActions{StateDelta: map[string]any{"a/b~c": "v", "": nil, "app:x": 1.0, "user:": "u"}, ArtifactDelta: map[string]int64{"f": 2}, TransferToAgent: "t", Escalate: true, SkipSummarization: true,
				RequestedToolConfirmations: map[string]toolconfirmation.ToolConfirmation{"c": {Hint: "h"}}},
			LLMResponse: model.LLMResponse{Content: genai.NewContentFromText("all", "model"), UsageMetadata: usage, ModelVersion: "gemini-2.5-pro", TurnComplete: true, FinishReason: "STOP", AvgLogprobs: -0.5, CustomMetadata: map[string]any{"m": "n"}}})
	for i, e := range all {
		e.ID = "e" + string(rune('A'+i/26)) + string(rune('a'+i%26))
	}
	return all
}

// Each event comes back equal, as JSON and as a Go value.
func TestEventsComeBackEqual(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adk.New(log).Sessions
	to := create(t, s, nil)
	all := everyEvent()
	appendEvents(t, s, to, all...)
	got := get(t, s, 0)
	if got.Events().Len() != len(all) {
		t.Fatalf("%d events, want %d", got.Events().Len(), len(all))
	}
	for i, want := range all {
		a, _ := json.Marshal(want)
		b, _ := json.Marshal(got.Events().At(i))
		if !bytes.Equal(a, b) {
			t.Errorf("event %d:\n got %s\nwant %s", i, b, a)
		}
	}
	if value(t, got, "a/b~c") != "v" || value(t, got, "") != nil || value(t, got, "app:x") != 1.0 || value(t, got, "user:") != "u" {
		t.Error("a key of the state is lost")
	}
	report, err := verify.Session(t.Context(), log, "adk/shop/ann/s1")
	if err != nil || len(report.Defects) > 0 {
		t.Errorf("verify: %v, %v", report.Defects, err)
	}
}

func TestTemporaryStateIsNotStored(t *testing.T) {
	dir := t.TempDir()
	log := adaptertest.Open(t, func() (eventlog.Store, error) { return jsonl.New(dir), nil })
	s := adk.New(log).Sessions
	to := create(t, s, map[string]any{"temp:a": "fleeting"})
	e := sets("hello", map[string]any{"temp:b": "fleeting", "kept": "lasting"})
	appendEvents(t, s, to, e)
	if value(t, to, "temp:b") != "fleeting" || e.Actions.StateDelta["temp:b"] != "fleeting" {
		t.Error("the caller lost its temporary state")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil || bytes.Contains(raw, []byte("fleeting")) || !bytes.Contains(raw, []byte("lasting")) {
			t.Errorf("%s has a temporary value: %v", name, err)
		}
	}
}

// hostile are names of apps, users and sessions; no two of them may be one.
func hostile() []string {
	long := strings.Repeat("x", 300)
	return []string{
		"a", "A", "a/b", "a%2Fb", "a/b/c", "a~", "ä日本", "\x00", "a\nb", "\u0085", "\xff", "\xfe", " ", ".", "..", "%", "%%", long, long + "y", strings.Repeat("日", 100),
		strings.Repeat("/", 60), strings.Repeat("x", 60), strings.Repeat("x", 61), "con", "user:ann", "app:shop",
	}
}

func TestHostileNames(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		s := adk.New(open(t)).Sessions
		names := hostile()
		var all []session.CreateRequest
		for i, name := range names {
			for _, key := range []session.CreateRequest{{AppName: name, UserID: "u", SessionID: "s"}, {AppName: "app", UserID: name, SessionID: "s"}, {AppName: "app", UserID: "u", SessionID: name}} {
				key.State = map[string]any{"n": i}
				created, err := s.Create(t.Context(), &key)
				if err != nil {
					t.Fatalf("%+q: %v", key, err)
				}
				appendEvents(t, s, created.Session, says(name))
				got, err := s.Get(t.Context(), &session.GetRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID})
				if err != nil || value(t, got.Session, "n") != float64(i) || got.Session.Events().Len() != 1 {
					t.Fatalf("%+q: %v", key, err)
				}
				all = append(all, key)
			}
		}
		for _, name := range append([]string{"app"}, names...) {
			list, err := s.List(t.Context(), &session.ListRequest{AppName: name})
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range all {
				found := slices.ContainsFunc(list.Sessions, func(x session.Session) bool {
					return x.AppName() == key.AppName && x.UserID() == key.UserID && x.ID() == key.SessionID
				})
				if found != (key.AppName == name) {
					t.Errorf("app %+q lists %+q: %v", name, key, found)
				}
			}
		}
	})
}

func TestALargePartIsABlob(t *testing.T) {
	adaptertest.EachStore(t, func(t *testing.T, open func(testing.TB) *eventlog.Log) {
		log := open(t)
		s := adk.New(log).Sessions
		to := create(t, s, nil)
		data := bytes.Repeat([]byte("0123456789"), 1<<20)
		large, text := says(""), says(strings.Repeat("long text ", 1<<20))
		large.Content.Parts = []*genai.Part{genai.NewPartFromBytes(data, "image/png")}
		appendEvents(t, s, to, large, text)
		got := get(t, adk.New(open(t)).Sessions, 0)
		if got.Events().Len() != 2 || !bytes.Equal(got.Events().At(0).Content.Parts[0].InlineData.Data, data) || got.Events().At(1).Content.Parts[0].Text != text.Content.Parts[0].Text {
			t.Error("the parts differ")
		}
		for info, err := range log.Sessions(t.Context()) {
			if err != nil || info.Bytes > 1<<20 {
				t.Errorf("session %s has lines of %d bytes: %v", info.ID, info.Bytes, err)
			}
		}
	})
}

func TestBadInputStoresNothing(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adk.New(log).Sessions
	to := create(t, s, map[string]any{"app:k": 0})
	before := heads(t, log)
	for name, e := range map[string]*session.Event{
		"channel in a shared state": sets("x", map[string]any{"app:k": make(chan int)}),
		"NaN in the state":          sets("x", map[string]any{"k": math.NaN(), "app:k": 1}),
		"function as output":        {ID: "f", Output: func() {}},
		"argument":                  {ID: "g", LLMResponse: model.LLMResponse{Content: genai.NewContentFromFunctionCall("f", map[string]any{"x": make(chan int)}, "model")}},
		"nil":                       nil,
	} {
		if err := s.AppendEvent(t.Context(), to, e); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := s.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ann", SessionID: "bad", State: map[string]any{"k": make(chan int), "app:k": 1}}); err == nil {
		t.Error("a state that cannot be encoded is accepted")
	}
	if to.Events().Len() != 0 {
		t.Error("the session of the caller has a refused event")
	}
	if after := heads(t, log); !slices.Equal(before, after) {
		t.Errorf("sessions before %v, after %v", before, after)
	}
	if err := s.AppendEvent(t.Context(), nil, says("x")); err == nil {
		t.Error("nil session is accepted")
	}
}

// Invalid UTF-8, which models send at times, becomes U+FFFD: it does not cost the turn.
func TestInvalidUnicode(t *testing.T) {
	s := adk.New(adaptertest.Folder(t)).Sessions
	to := create(t, s, nil)
	appendEvents(t, s, to, sets("caf\xc3", map[string]any{"k\xff": "v\xff"}))
	if got := get(t, s, 0); texts(got)[0] != "caf\uFFFD" || value(t, got, "k\uFFFD") != "v\uFFFD" {
		t.Errorf("%q", texts(got))
	}
}

func TestUnknownSessionsAndClosedStores(t *testing.T) {
	log := adaptertest.Folder(t)
	s := adk.New(log).Sessions
	to := create(t, s, nil)
	if _, err := s.Get(t.Context(), &session.GetRequest{AppName: "shop", UserID: "ann", SessionID: "none"}); !errors.Is(err, eventlog.ErrNotFound) || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("Get: %v", err)
	}
	if _, err := s.Create(t.Context(), &session.CreateRequest{AppName: "shop", UserID: "ann", SessionID: "s1"}); !errors.Is(err, eventlog.ErrExists) {
		t.Errorf("Create: %v", err)
	}
	if err := s.Delete(t.Context(), &session.DeleteRequest{AppName: "shop", UserID: "ann", SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendEvent(t.Context(), to, says("x")); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("AppendEvent to a removed session: %v", err)
	}
	log.Close()
	if err := s.AppendEvent(t.Context(), to, says("x")); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("AppendEvent: %v", err)
	}
	if _, err := s.List(t.Context(), &session.ListRequest{AppName: "shop"}); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("List: %v", err)
	}
}

// heads lists the sessions with their newest events.
func heads(t testing.TB, log *eventlog.Log) (list []string) {
	t.Helper()
	for info, err := range log.Sessions(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		h := info.Last.Hash()
		list = append(list, info.ID+" "+h.String())
	}
	return list
}

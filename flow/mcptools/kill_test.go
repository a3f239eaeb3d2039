//go:build unix

package mcptools_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/flow/flowtest"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

func openStore(kind, dir string) *eventlog.Log {
	if kind == "sqlite" {
		return eventlog.Open(sqlite.New(filepath.Join(dir, "log.db")))
	}
	return eventlog.Open(jsonl.New(filepath.Join(dir, "log")))
}

// runAgent runs turns with hooks, typed answers and MCP tools until all of them have ended. Then it exits.
func runAgent() error {
	ctx := context.Background()
	dir := os.Getenv(dirEnv)
	turns, err := strconv.Atoi(os.Getenv(turnsEnv))
	if err != nil {
		return err
	}
	log := openStore(os.Getenv(storeEnv), dir)
	defer log.Close()
	server := stdio(dir)
	defer server.Close()
	tools, err := server.Tools(ctx)
	if err != nil {
		return err
	}
	a := &flow.Agent[state]{Name: "a", Log: log, Turn: typedTurn(tools)}
	a.Options.Hooks = []flow.Hook{diaryHook(dir)}
	for n := range turns {
		in := flow.Text(fmt.Sprint("turn ", n))
		in.ID = fmt.Sprint("in-", n)
		_, err := a.Run(ctx, "s", in)
		for err != nil {
			if err = settle(ctx, log, dir, err); err != nil {
				return err
			}
			h, resumed := a.Resume(ctx, flow.Ref{Session: "s"})
			if err = resumed; err == nil {
				_, err = h.Wait(ctx)
			}
		}
	}
	return nil
}

// settle does what a turn waits for: an answer, or the outcome of a call that was killed.
func settle(ctx context.Context, log *eventlog.Log, dir string, cause error) error {
	var pause *flow.Hibernated
	switch {
	case errors.As(cause, &pause):
		for _, r := range pause.Reviews {
			if _, err := flow.Decide(ctx, log, "s", flow.Answer{Review: r, Decision: event.Approved}); err != nil {
				return err
			}
		}
		return nil
	case errors.Is(cause, flow.ErrNeedsReconcile):
		info, err := flow.Info(ctx, log, "s")
		if err != nil {
			return err
		}
		for _, x := range info.Effects {
			if x.Class != event.EffectUnsafeOnce {
				continue
			}
			o := flow.Outcome{By: "a person", DidNotRun: lines(dir, x.Name+" "+x.Key) == 0}
			if !o.DidNotRun {
				o.Result = "paid, says the diary"
			}
			if _, err := flow.Reconcile(ctx, log, "s", x.Key, o); err != nil {
				return err
			}
		}
		return nil
	}
	return cause
}

// typedTurn asks a model that calls tools, answers wrong, and then answers.
func typedTurn(tools []flow.ToolSpec) func(context.Context, *flow.Turn[state]) error {
	return func(ctx context.Context, t *flow.Turn[state]) error {
		n := t.Index()
		args := jsontext.Value(fmt.Sprintf(`{"n":%d}`, n))
		model := flowtest.Script{
			flowtest.Say("", event.ToolCall(fmt.Sprintf("look-%d", n), "look", args), event.ToolCall(fmt.Sprintf("pay-%d", n), "pay", args)),
			flowtest.Say("It is paid."),
			flowtest.Say(string(args)),
		}
		got, err := flow.Ask[arguments](ctx, t, model, flow.Request{Tools: tools})
		if err != nil {
			return err
		}
		return t.Update(func(s *state) error { s.Total += got.N; return nil })
	}
}

// diaryHook counts answers in the state, and marks each result of a tool. Its mark differs at each call.
func diaryHook(dir string) flow.Hook {
	return flow.Hook{Name: "diary",
		AfterModel: func(ctx context.Context, _ *flow.Request, _ *flow.Response) error {
			return flow.Update(ctx, func(s *state) error { s.Answers++; return nil })
		},
		AfterTool: func(ctx context.Context, _ event.Part, result *event.Part) error {
			mark := fmt.Sprintf("checked-%d", rand.Uint64())
			for i := range result.Content {
				result.Content[i].Text += " " + mark
			}
			run, _ := flow.FromContext(ctx)
			return note(dir, fmt.Sprint("hook ", run.Key, " ", mark))
		}}
}

// The process of an agent and its MCP server are killed at any moment. Each call runs as its class promises; what a hook and a
// model decided counts once.
func TestKillHooksAnswersAndTools(t *testing.T) {
	kills := testsize.Pick(2, 6, 100)
	for _, store := range []string{"jsonl", "sqlite"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			turns, killed := 0, 0
			for killed < kills || turns == 0 {
				turns++
				for done := false; !done; {
					done = runUntilKilled(t, store, dir, turns, killed < kills)
					if !done {
						killed++
					}
				}
			}
			checkKilled(t, openStore(store, dir), dir, turns)
			t.Logf("%d kills in %d turns; %d payments, %d looks, %d hooks of tools", killed, turns, lines(dir, "pay"), lines(dir, "look"), lines(dir, "hook"))
		})
	}
}

// runUntilKilled runs the agent. It reports whether all turns have ended.
func runUntilKilled(t *testing.T, store, dir string, turns int, kill bool) (done bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=agent", dirEnv+"="+dir, storeEnv+"="+store, fmt.Sprint(turnsEnv, "=", turns))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // with its server
	var out strings.Builder
	cmd.Stderr = &out
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	if kill {
		killer.Go(func() { killSoon(cmd.Process.Pid, dir, ended) })
	}
	err := cmd.Wait()
	close(ended)
	killer.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signaled() {
		return false
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return true
}

// killSoon kills a process and its server some time after the diary has up to 3 more lines: most times in a call, in a hook or
// before their record.
func killSoon(pid int, dir string, ended <-chan struct{}) {
	size := func() (n int) {
		raw, _ := os.ReadFile(diary(dir)) // it may be missing
		return strings.Count(string(raw), "\n")
	}
	until := size() + rand.N(4)
	after := rand.N(12 * time.Millisecond)
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
		if size() >= until {
			break
		}
	}
	time.Sleep(after)
	syscall.Kill(-pid, syscall.SIGKILL)
}

func checkKilled(t *testing.T, log *eventlog.Log, dir string, turns int) {
	t.Helper()
	defer log.Close()
	a := &flow.Agent[state]{Name: "a", Log: log, Turn: typedTurn(nil)}
	last := flow.Text("")
	last.ID = fmt.Sprint("in-", turns-1)
	out, err := a.Run(t.Context(), "s", last) // it has ended: nothing runs
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Custom; got.Total != turns*(turns-1)/2 || got.Answers != 3*turns {
		t.Errorf("after %d turns the state is %+v", turns, got)
	}
	results := map[string]int{}
	for _, m := range out.Messages {
		for _, p := range m.ToolResults() {
			results[p.CallID]++
			text := p.Content[0].Text
			if hooked := strings.Count(text, "checked-"); hooked != 1 && !strings.Contains(text, "says the diary") {
				t.Errorf("the result of %s passed the hook %d times: %s", p.CallID, hooked, text)
			}
		}
	}
	if len(results) != 2*turns {
		t.Errorf("%d calls have results, want %d", len(results), 2*turns)
	}
	raw, _ := os.ReadFile(diary(dir))
	paid := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "pay ") {
			paid[line]++
		}
	}
	for line, n := range paid {
		if n > 1 {
			t.Errorf("%s ran %d times", line, n)
		}
	}
	if len(paid) != turns || lines(dir, "look") < turns {
		t.Errorf("%d payments and %d looks in %d turns", len(paid), lines(dir, "look"), turns)
	}
}

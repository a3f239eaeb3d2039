//go:build unix

package torture

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/projection"
	"github.com/convlog/convlog/upkeep/verify"
)

// execution is one execution of an effect.
type execution struct {
	key     string
	attempt int
}

// diary has the lines that the agent's effects wrote, over all its processes.
type diary struct {
	executions []execution
	class      map[string]event.EffectClass // by key
}

// readDiary reads the diary in dir. A kill inside a write may leave the beginning of a line
// without its last word; the effect had not begun, or had not ended, and the next line begins
// anew.
func readDiary(dir string) (diary, error) {
	d := diary{class: map[string]event.EffectClass{}}
	f, err := os.Open(diaryIn(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var verb, class, last string
		var x execution
		_, err := fmt.Sscan(lines.Text(), &verb, &x.key, &x.attempt, &class, &last)
		if whole := err == nil && last == "."; !whole || verb == "end" {
			continue
		}
		d.class[x.key] = event.EffectClass(class)
		d.executions = append(d.executions, x)
	}
	return d, lines.Err()
}

// check compares the diary with the log. A person lets an effect run again only if the
// diary shows that it did not run, so these effects ran once too.
func (d *diary) check(ctx context.Context, log *eventlog.Log) error {
	sessions, err := sessionsOf(ctx, log)
	if err != nil {
		return err
	}
	intents, results, err := effectsOf(ctx, log, sessions...)
	if err != nil {
		return err
	}
	seen, runs := map[execution]bool{}, map[string]int{}
	for _, x := range d.executions {
		result, finished := results[x.key]
		switch {
		case seen[x]:
			return fmt.Errorf("attempt %d of %s effect %s ran twice", x.attempt, d.class[x.key], x.key)
		case !intents[x]:
			return fmt.Errorf("attempt %d of %s effect %s ran without an intent", x.attempt, d.class[x.key], x.key)
		case !finished:
			return fmt.Errorf("%s effect %s has no result", d.class[x.key], x.key)
		case x.attempt > result:
			return fmt.Errorf("attempt %d of %s effect %s ran after the result of attempt %d", x.attempt, d.class[x.key], x.key, result)
		}
		seen[x] = true
		runs[x.key]++
	}
	for key, n := range runs {
		if byPerson(d.class[key]) && n > 1 {
			return fmt.Errorf("%s effect %s ran %d times", d.class[key], key, n)
		}
	}
	return nil
}

// effectsOf reads the intents of sessions, and by key the attempt that has the result.
func effectsOf(ctx context.Context, log *eventlog.Log, sessions ...string) (intents map[execution]bool, results map[string]int, err error) {
	intents, results = map[execution]bool{}, map[string]int{}
	for e, err := range ownEvents(ctx, log, sessions...) {
		if err != nil {
			return nil, nil, err
		}
		switch e.Type.Name() {
		case event.EffectIntended:
			p, _, err := event.Decode[event.EffectIntent](&e)
			x := execution{p.Key, p.Attempt}
			if err == nil && (intents[x] || results[p.Key] > 0) {
				err = fmt.Errorf("seq %d: a second intent of attempt %d, or one after the result", e.Seq, p.Attempt)
			}
			if err != nil {
				return nil, nil, err
			}
			intents[x] = true
		case event.EffectCompleted:
			p, _, err := event.Decode[event.EffectCompletion](&e)
			if err == nil && !p.RetryAt.IsZero() && results[p.Key] == p.Attempt {
				delete(results, p.Key) // a retry takes the failure back
				continue
			}
			if err == nil && results[p.Key] > 0 {
				err = fmt.Errorf("seq %d: a second result of effect %s", e.Seq, p.Key)
			}
			if err != nil {
				return nil, nil, err
			}
			if p.RetryAt.IsZero() {
				results[p.Key] = p.Attempt
			}
		}
	}
	return intents, results, nil
}

// sessionOutcome describes the outcomes of a session's turns, without ids and times.
func sessionOutcome(ctx context.Context, log *eventlog.Log, session string) ([]string, error) {
	l, err := projection.LoadSet(ctx, log, session, projection.Session())
	if err != nil {
		return nil, err
	}
	history, _ := projection.State(l, projection.History())
	entries, err := history.Messages()
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, x := range entries {
		if session != agentSession {
			x.Message.InputID = "" // it has the id of the parent's turn
		}
		lines = append(lines, fmt.Sprintf("message %s", jsonOf(x.Message)))
	}
	info, _ := projection.State(l, projection.Info())
	custom, _ := projection.State(l, projection.Custom())
	state, err := projection.Canonical(custom.Get(info.Agent).Raw())
	if err != nil {
		return nil, err
	}
	lines = append(lines, fmt.Sprintf("state of %s %s", info.Agent, state))
	var artifacts []string
	list, _ := projection.State(l, projection.Artifacts())
	for _, a := range list.Items {
		artifacts = append(artifacts, fmt.Sprintf("artifact %s %s", a.Name, a.Body.Blob))
	}
	slices.Sort(artifacts) // those of a batch of children have any order
	lines = append(lines, artifacts...)
	usage, _ := projection.State(l, projection.Usage())
	lines = append(lines, "usage "+jsonOf(usage.Total), "by model "+jsonOf(usage.ByModel))
	return lines, nil
}

// sameOutcome compares two outcomes and returns the first difference.
func sameOutcome(got, want []string) error {
	for i := range max(len(got), len(want)) {
		a, b := "nothing", "nothing"
		if i < len(got) {
			a = got[i]
		}
		if i < len(want) {
			b = want[i]
		}
		if a != b {
			return fmt.Errorf("line %d of the outcome is\n%s\nand without kills\n%s", i, a, b)
		}
	}
	return nil
}

// checkInputs checks that each turn began once, with its input.
func checkInputs(ctx context.Context, log *eventlog.Log, turns int) error {
	starts, messages := 0, 0
	for e, err := range log.Read(ctx, agentSession, eventlog.All()) {
		if err != nil {
			return err
		}
		got, want := "", ""
		switch e.Type.Name() {
		case event.TurnStarted:
			p, _, err := event.Decode[event.TurnStart](&e)
			if err != nil {
				return err
			}
			got, want = p.InputID, inputOf(starts).ID
			starts++
		case event.MessageAdded:
			p, _, err := event.Decode[event.Message](&e)
			if err != nil {
				return err
			}
			if p.Role == event.User {
				got, want = p.InputID, inputOf(messages).ID
				messages++
			}
		}
		if got != want {
			return fmt.Errorf("seq %d has input %q, want %q", e.Seq, got, want)
		}
	}
	if starts != turns || messages != turns {
		return fmt.Errorf("%d turns began, with %d inputs; want %d", starts, messages, turns)
	}
	return nil
}

// verifySilent checks that verify finds neither a defect nor a note.
func verifySilent(ctx context.Context, log *eventlog.Log, session string) error {
	report, err := verify.Session(ctx, log, session)
	for _, d := range append(report.Defects, report.Notes...) {
		err = errors.Join(err, fmt.Errorf("verify: %v", d))
	}
	return err
}

// jsonOf is a value as JSON, with sorted names.
func jsonOf(v any) string {
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// A line of the diary that a kill cut off at any byte leaves the lines before and after it.
func TestDiaryCutByAKill(t *testing.T) {
	t.Parallel()
	const before, torn, after = "\nbegin a 1 pure .\n\nend a 1 pure .\n", "\nbegin b 1 unsafe_once .\n", "\nbegin c 2 dedupe .\n"
	for n := range len(torn) - len(".\n") + 1 {
		dir := t.TempDir()
		if err := os.WriteFile(diaryIn(dir), []byte(before+torn[:n]+after), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := readDiary(dir); err != nil || !slices.Equal(d.executions, []execution{{"a", 1}, {"c", 2}}) {
			t.Errorf("cut to %q: %v %v", torn[:n], d.executions, err)
		}
	}
}

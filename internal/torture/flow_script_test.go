//go:build unix

package torture

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
)

// agentSession is the session of the agent that is killed.
const agentSession = "agent"

// script is an agent whose turns depend only on the seed and on their number. Each
// execution of an effect writes a line to the diary before its work and another one
// after it. The diary is a file beside the log, so that it shows what really ran.
type script struct {
	seed   uint64
	levels int // of children below the agent
	diary  *os.File
	log    *eventlog.Log // gets an own event of each tool
	pause  time.Duration // the longest work of an effect
}

// tally is the custom state of the agent.
type tally struct {
	Turns   int
	Results map[string]string
}

func diaryIn(dir string) string { return filepath.Join(dir, "diary.txt") }

// openScript opens the diary in dir.
func openScript(dir string, seed uint64, levels int) (*script, error) {
	f, err := os.OpenFile(diaryIn(dir), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &script{seed: seed, levels: levels, diary: f, pause: 3 * time.Millisecond}, err
}

func (s *script) agent(log *eventlog.Log) *flow.Agent[tally] {
	s.log = log
	return &flow.Agent[tally]{Name: "script", Log: log, Turn: s.turn, Options: scriptOptions}
}

var scriptOptions = flow.Options{InProcess: 20 * time.Millisecond, Retry: flow.Retry{Attempts: 9, First: time.Millisecond}}

// inputOf is the input of turn n.
func inputOf(n int) flow.Input {
	in := flow.Text(fmt.Sprintf("turn %d", n))
	in.ID = fmt.Sprintf("input-%d", n)
	return in
}

// place is an act of a turn.
type place struct {
	*script
	t      *flow.Turn[tally]
	r      *rand.Rand
	levels int    // of children below
	turn   string // names the turn
	name   string // names the act and its effects
}

func (s *script) turn(ctx context.Context, t *flow.Turn[tally]) error {
	return s.play(ctx, t, strconv.Itoa(t.Index()), s.levels, 2, 4)
}

// play is a turn of an agent with levels of children below it. It has least acts, and
// fewer than more in addition. The name is unique in the tree of sessions.
func (s *script) play(ctx context.Context, t *flow.Turn[tally], name string, levels, least, more int) error {
	r := rand.New(rand.NewPCG(s.seed, hashOf(name)))
	if err := s.converse(ctx, t, levels); err != nil {
		return err
	}
	for i := range least + r.IntN(more) {
		p := &place{s, t, r, levels, name, fmt.Sprintf("%s-%d", name, i)}
		all := acts()
		if err := all[r.IntN(len(all))](ctx, p); err != nil {
			return err
		}
	}
	return t.Update(func(c *tally) error { c.Turns++; return nil })
}

func acts() []func(context.Context, *place) error {
	return []func(context.Context, *place) error{
		single, single, single, several, several, add, addArtifact, nap, signal, late, failing, update,
	}
}

var classes = []event.EffectClass{event.EffectPure, event.EffectIdempotent, event.EffectDedupe, event.EffectReconcile, event.EffectUnsafeOnce}

// effect makes an effect of a random class, or one that runs a child. Effects that do not
// need a person may also change the state, together with their result.
func (p *place) effect(name string) flow.Call[string] {
	if p.levels > 0 && p.r.IntN(3) == 0 {
		return p.delegate(name)
	}
	class := classes[p.r.IntN(len(classes))]
	e := flow.Effect{Name: string(class) + " " + name, Class: class, Arguments: map[string]string{"place": name}}
	if class == event.EffectUnsafeOnce || class == event.EffectReconcile && p.r.IntN(2) == 0 {
		e.Review = &flow.Question{Prompt: "may it run?"}
	}
	return flow.Call[string]{Effect: e, Do: func(ctx context.Context) (string, error) {
		p.work(ctx, class)
		if byPerson(class) {
			return resultOf(e.Name), nil
		}
		err := flow.Update(ctx, func(c *tally) error { c.note("inside "+name, "done"); return nil })
		return resultOf(e.Name), err
	}}
}

// byPerson reports whether an interrupted effect of a class needs a person.
func byPerson(class event.EffectClass) bool {
	return class == event.EffectReconcile || class == event.EffectUnsafeOnce
}

// resultOf is the result of an effect. A person who reconciles it knows it too.
func resultOf(name string) string { return "result of " + name }

func (c *tally) note(key, value string) { setKey(&c.Results, key, value) }

// keep notes the result of an effect in the state, outside the effect.
func (p *place) keep(name, value string, err error) error {
	var ended *flow.EffectError
	if err != nil && !errors.As(err, &ended) {
		return err
	}
	if err != nil {
		value = err.Error()
	}
	return p.t.Update(func(c *tally) error { c.note(name, value); return nil })
}

func single(ctx context.Context, p *place) error {
	c := p.effect(p.name)
	value, err := flow.Do(ctx, p.t, c.Effect, func(ctx context.Context) (string, error) {
		value, err := c.Do(ctx)
		if run, _ := flow.FromContext(ctx); err == nil && !byPerson(c.Class) {
			err = run.Add(event.Message{Role: event.Developer, Parts: []event.Part{event.Text("added inside " + p.name)}})
		}
		return value, err
	})
	return p.keep(p.name, value, err)
}

func several(ctx context.Context, p *place) error {
	calls := make([]flow.Call[string], 2+p.r.IntN(4))
	for i := range calls {
		calls[i] = p.effect(fmt.Sprintf("%s-%d", p.name, i))
	}
	results, err := flow.Batch(ctx, p.t, p.r.IntN(3), calls...)
	for i, r := range results {
		if err == nil {
			err = p.keep(calls[i].Name, r.Value, r.Err)
		}
	}
	return err
}

func add(_ context.Context, p *place) error {
	return p.t.Add(event.Message{Role: event.Developer, Parts: []event.Part{event.Text("added at " + p.name)}})
}

func addArtifact(ctx context.Context, p *place) error {
	a := event.Artifact{Name: fmt.Sprintf("artifact %d", p.r.IntN(3)), MediaType: "text/plain"}
	if p.levels < p.script.levels { // of a child: the artifacts of several children reach their parent in any order
		a.Name += " of " + p.turn
	}
	return p.t.SetArtifact(ctx, a, []byte(strings.Repeat(p.name, 1+p.r.IntN(2000))))
}

func nap(ctx context.Context, p *place) error {
	return p.t.Sleep(ctx, time.Duration(p.r.IntN(30))*time.Millisecond)
}

// signal waits for a value that a person sends as soon as the wait exists.
func signal(ctx context.Context, p *place) error {
	w, err := p.t.NewWait(ctx, "signal "+p.name, 0)
	if err != nil {
		return err
	}
	if p.r.IntN(2) == 0 {
		if err := single(ctx, p); err != nil {
			return err
		}
	}
	value, err := flow.Await[string](ctx, p.t, w)
	return p.keep("signal "+p.name, value, err)
}

// late fails at first. Its next attempt is so late that the turn may hibernate.
func late(ctx context.Context, p *place) error {
	e := flow.Effect{Name: "late " + p.name, Retry: flow.Retry{Attempts: 9, First: time.Duration(1+p.r.IntN(40)) * time.Millisecond}}
	value, err := flow.Do(ctx, p.t, e, func(ctx context.Context) (string, error) {
		p.work(ctx, event.EffectIdempotent)
		if attempt(ctx) == 1 {
			return "", errors.New("not yet")
		}
		return resultOf(e.Name), nil
	})
	return p.keep(e.Name, value, err)
}

func failing(ctx context.Context, p *place) error {
	_, err := flow.Do(ctx, p.t, flow.Effect{Name: "failing " + p.name}, func(ctx context.Context) (string, error) {
		p.work(ctx, event.EffectIdempotent)
		return "", errors.New("it cannot work")
	})
	return p.keep("failing "+p.name, "", err)
}

func update(_ context.Context, p *place) error { return p.keep(p.name, "outside", nil) }

// converse asks the model and runs its tools until it calls none.
func (s *script) converse(ctx context.Context, t *flow.Turn[tally], levels int) error {
	return flow.Chat[tally](s, flow.Request{System: "Be brief."}, append(s.tools(), s.agentTools(levels)...)...)(ctx, t)
}

// Generate answers a user with tool calls, and results of tools with the digest of all
// that it saw. So two turns that saw different things differ in the history.
func (s *script) Generate(ctx context.Context, r *flow.Request, emit func(eventlog.Delta)) (flow.Response, error) {
	s.work(ctx, event.EffectPure)
	var raw []byte
	for _, x := range r.Messages {
		x.Message.InputID = "" // of a child, it has the id of the parent's turn
		text, err := json.Marshal(x.Message, json.Deterministic(true))
		if err != nil {
			return flow.Response{}, err
		}
		raw = append(raw, text...)
	}
	sum := hashOf(string(raw))
	if sum%4 == 0 && attempt(ctx) == 1 {
		return flow.Response{}, errors.New("the provider is busy")
	}
	text := fmt.Sprintf("saw %d messages: %x", len(r.Messages), sum)
	emit(eventlog.Delta{Kind: event.TextPart, Text: text})
	m := event.Message{Provider: "test", Model: "script", StopReason: "stop", Parts: []event.Part{event.Text(text)},
		Usage: event.Usage{InputTokens: int64(len(raw)), OutputTokens: int64(len(text))}}
	if r.Messages[len(r.Messages)-1].Message.Role == event.User {
		for i := range sum % 4 {
			arguments := fmt.Sprintf(`{"of":"%d-%d"}`, len(r.Messages), i)
			tool := r.Tools[(sum>>8+i)%uint64(len(r.Tools))].Name
			if strings.HasPrefix(tool, agentTool) {
				arguments = fmt.Sprintf(`{"task":"%x-%d"}`, sum, i)
			}
			m.Parts = append(m.Parts, event.ToolCall(fmt.Sprintf("call-%d-%d", len(r.Messages), i), tool, jsontext.Value(arguments)))
		}
	}
	return flow.Response{Message: m, Cost: event.Dollar / 1000}, nil
}

// tools are a tool of each class; the tools of class unsafe_once have a review.
func (s *script) tools() (tools []flow.ToolSpec) {
	for _, class := range classes {
		tool := flow.ToolSpec{Name: string(class), Class: class, Run: func(ctx context.Context, call event.Part) ([]event.Part, error) {
			s.work(ctx, class)
			if err := s.audit(ctx); err != nil {
				return nil, err
			}
			if run, _ := flow.FromContext(ctx); !byPerson(class) {
				if err := run.SetArtifact(ctx, event.Artifact{Name: "of tool " + string(class), MediaType: "text/plain"}, []byte(class)); err != nil {
					return nil, err
				}
			}
			return []event.Part{event.Text(resultOf(string(call.Arguments)))}, nil
		}}
		if class == event.EffectUnsafeOnce {
			tool.Review = func(context.Context, event.Part) (*flow.Question, error) {
				return &flow.Question{Prompt: "may it run?"}, nil
			}
		}
		tools = append(tools, tool)
	}
	return tools
}

// audit appends an event of an own type to the session whose turn runs.
func (s *script) audit(ctx context.Context) error {
	run, _ := flow.FromContext(ctx)
	_, err := s.log.Append(context.WithoutCancel(ctx), run.Session, eventlog.Any(), event.Event{ID: event.NewID(), Type: "torture:audited", Data: []byte(`{"by":"a tool"}`)})
	return err
}

// work is the work of an execution of an effect: two lines in the diary, and some time
// between them.
func (s *script) work(ctx context.Context, class event.EffectClass) {
	run, ok := flow.FromContext(ctx)
	if !ok {
		panic("no effect runs")
	}
	s.write("begin", run, class)
	pause := s.pause
	if byPerson(class) {
		pause *= 5 // so that some are interrupted
	}
	time.Sleep(rand.N(pause))
	s.write("end", run, class)
}

func (s *script) write(verb string, run flow.Running, class event.EffectClass) {
	if _, err := fmt.Fprintf(s.diary, "\n%s %s %d %s .\n", verb, run.Key, run.Attempt, class); err != nil {
		panic(err)
	}
}

func attempt(ctx context.Context) int {
	run, _ := flow.FromContext(ctx)
	return run.Attempt
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // it never fails
	return h.Sum64()
}

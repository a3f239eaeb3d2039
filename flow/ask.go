package flow

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// maxAnswers is the number of answers after which Ask gives up.
const maxAnswers = 3

// Ask asks a model as Chat does, and decodes the last answer into T.
//
// The JSON Schema of the answer is inferred from T, as Tool infers it. If T is no struct and no
// map, the answer is an object with the member "answer". The schema is Request.Output, and a part
// of the system text for models that ignore Output. r.Tools are the tools that the model may
// call; r.Messages is ignored.
//
// Each answer is validated. An answer that does not fit stays in the history, and a developer
// message tells the model the problems. After 3 such answers the error is a *ModelError with the
// code schema. The other errors are the errors of Chat, and ErrStart if T has no schema.
func Ask[T, S any](ctx context.Context, t *Turn[S], m Model, r Request) (value T, err error) {
	f, err := newForm("answer", reflect.TypeFor[T]())
	decode := func(raw jsontext.Value) (problems []string) {
		value, problems = decodeAs[T](f, raw)
		return problems
	}
	if err != nil {
		type wrapped struct {
			Answer T `json:"answer"`
		}
		f, err = newForm("answer", reflect.TypeFor[wrapped]())
		decode = func(raw jsontext.Value) []string {
			w, problems := decodeAs[wrapped](f, raw)
			value = w.Answer
			return problems
		}
	}
	if err != nil {
		return value, t.t.stop(fmt.Errorf("%w: Ask[%v]: %w", ErrStart, reflect.TypeFor[T](), err))
	}
	r.Output, r.Messages = f.schema, nil
	r.System = strings.TrimLeft(r.System+"\n\nThe last answer is JSON without any other text. It fits this JSON Schema: "+string(f.schema), "\n")
	if err := t.t.ask(ctx, m, r, decode); err != nil {
		var none T
		return none, err
	}
	return value, nil
}

func decodeAs[T any](f *form, raw jsontext.Value) (value T, problems []string) {
	problems = f.decode(raw, &value)
	return value, problems
}

// ask asks the model until its answer has no problems.
func (t *turn) ask(ctx context.Context, m Model, r Request, decode func(jsontext.Value) []string) error {
	for n := 1; ; n++ {
		answer, err := t.chat(ctx, m, r)
		if err != nil {
			return err
		}
		problems := decode(jsontext.Value(withoutFence(answer.Text())))
		if len(problems) == 0 {
			return nil
		}
		if answer.StopReason == "length" {
			problems = append(problems, "it was cut at the limit of tokens")
		}
		told := strings.Join(problems, "; ")
		if n == maxAnswers {
			return &ModelError{Provider: cmp.Or(answer.Provider, "model"), Code: "schema", Final: true,
				Message: fmt.Sprintf("%d answers do not fit the JSON Schema, the last one: %s. Use a simpler type or another model", n, told)}
		}
		correction := event.Message{Role: event.Developer, Parts: []event.Part{event.Text("The answer does not fit the JSON Schema: " + told + ". Answer again.")}}
		if err := t.add(event.New(correction)); err != nil {
			return err
		}
	}
}

// withoutFence is a text without the code fence that is around all of it.
func withoutFence(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutSuffix(text, "```"); ok && strings.HasPrefix(inner, "```") {
		if _, inner, ok = strings.Cut(inner, "\n"); ok {
			return inner
		}
	}
	return text
}

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var hookCases = []testCase{
	{
		name:        "rewrites",
		explanation: "A hook sees each event before it is stored and may rewrite its data, metadata and cost; a retry is still stored once.",
		run:         testHookRewrites,
	},
	{
		name:        "refuses",
		explanation: "A hook that refuses one event refuses the append it is in, before anything is written.",
		run:         testHookRefuses,
	},
	{
		name:        "is validated",
		explanation: "What a hook makes of an event is validated like any other.",
		run: func(t *env) {
			l := t.over(t.store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
				e.Data = jsontext.Value("{broken")
				return nil
			}})
			t.refused(event.ErrInvalidData, l, "a", eventlog.New(), note(1))
			t.missing(l, "a")
		},
	},
	{
		name:        "upcasters",
		explanation: "Upcasters turn older payloads into newer ones on read, step by step; the stored bytes stay.",
		run:         testUpcast,
	},
	{
		name:        "upcaster that fails",
		explanation: "An upcaster that fails ends the read with its error.",
		run: func(t *env) {
			t.fill(t.log(), "a", 2)
			l := t.over(t.store(), eventlog.Options{Upcasters: []event.Upcaster{{From: "test:note", To: "test:note/2",
				Cast: func(jsontext.Value) (jsontext.Value, error) { return nil, errInjected }}}})
			_, err := collect(l.Read(t.ctx, "a", eventlog.All()))
			t.wantErr(errInjected, err)
		},
	},
}

func testHookRewrites(t *env) {
	hook := func(_ context.Context, session string, e *event.Event) error {
		e.Data = bytes.ReplaceAll(e.Data, []byte("hunter2"), []byte("***"))
		e.Cost = 3
		return e.SetMetadata("seen_in", session)
	}
	l := t.over(t.store(), eventlog.Options{Hook: hook})
	secret := user("my password is hunter2")
	head := t.append(l, "a", eventlog.New(), secret)
	t.same("head of the retry", head, t.append(l, "a", eventlog.New(), secret))
	e := t.read(t.reopen(), "a", eventlog.All())[0]
	t.same("data", strings.ReplaceAll(string(secret.Data), "hunter2", "***"), string(e.Data))
	t.same("metadata", `{"seen_in":"a"}`, string(e.Metadata))
	t.same("cost", event.Cost(3), e.Cost)
	t.same("the caller's own event", true, bytes.Contains(secret.Data, []byte("hunter2")))
}

var errUnwanted = errors.New("unwanted")

func testHookRefuses(t *env) {
	l := t.over(t.store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
		if string(e.Data) == `{"n":2}` {
			return errUnwanted
		}
		return nil
	}})
	t.append(l, "a", eventlog.New(), note(1))
	err := t.refused(eventlog.ErrRefused, l, "a", eventlog.Any(), notes(4)...)
	t.wantErr(errUnwanted, err)
	t.refused(eventlog.ErrRefused, l, "b", eventlog.New(), note(2))
	t.missing(l, "b")
}

func testUpcast(t *env) {
	t.append(t.log(), "a", eventlog.New(), newEvent("test:order", `1.0`), newEvent("test:order/2", `{"n":2}`), newEvent("test:order/3", `[3]`), note(4))
	lines := t.lines(t.log(), "a")
	wrap := func(format string) func(jsontext.Value) (jsontext.Value, error) {
		return func(data jsontext.Value) (jsontext.Value, error) { return fmt.Appendf(nil, format, data), nil }
	}
	l := t.over(t.store(), eventlog.Options{Upcasters: []event.Upcaster{
		{From: "test:order/2", To: "test:order/3", Cast: wrap(`[%s]`)},
		{From: "test:order", To: "test:order/2", Cast: wrap(`{"n":%s}`)},
	}})
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.Last(4)} {
		var got []string
		for _, e := range t.read(l, "a", r) {
			got = append(got, string(e.Type)+" "+string(e.Data))
		}
		t.same("events", []string{`test:order/3 [{"n":1.0}]`, `test:order/3 [{"n":2}]`, `test:order/3 [3]`, `test:note {"n":4}`}, got)
	}
	t.same("lines", lines, t.lines(l, "a"))
	t.sound(l, "a")
}

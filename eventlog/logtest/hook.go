package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
)

var hookCases = []testCase{
	{
		Name:        "rewrites",
		Explanation: "A hook sees each event before it is stored and may change its data, metadata and cost. A retry is still stored once.",
		Run:         testHookRewrites,
	},
	{
		Name:        "rejects",
		Explanation: "A hook that rejects one event rejects the whole append before anything is written.",
		Run:         testHookRefuses,
	},
	{
		Name:        "is validated",
		Explanation: "An event that a hook changed is validated like any other event.",
		Run: func(t *env) {
			l := t.LogOver(t.Store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
				e.Data = jsontext.Value("{broken")
				return nil
			}})
			t.WantAppendError(event.ErrInvalidData, l, "a", eventlog.New(), suite.Note(1))
			t.WantMissing(l, "a")
		},
	},
	{
		Name:        "bodies",
		Explanation: "BodyHook changes a body before it is stored, or refuses it. Spilled data passes only Hook.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testBodyHook,
	},
	{
		Name:        "masked",
		Explanation: "Events with masked secrets are the same if their ids and types are equal, whatever the masks are.",
		Run:         testMaskedRetry,
	},
	{
		Name:        "upcasters",
		Explanation: "Upcasters convert older payloads into newer ones on read, step by step. The stored bytes do not change.",
		Run:         testUpcast,
	},
	{
		Name:        "failing upcaster",
		Explanation: "A read ends with the error of a failing upcaster.",
		Run: func(t *env) {
			t.Fill(t.Main(), "a", 2)
			l := t.LogOver(t.Store(), eventlog.Options{Upcasters: []event.Upcaster{{From: "test:note", To: "test:note/2",
				Cast: func(jsontext.Value) (jsontext.Value, error) { return nil, suite.ErrInjected }}}})
			_, err := suite.Collect(l.Read(t.Ctx, "a", eventlog.All()))
			t.WantErr(suite.ErrInjected, err)
		},
	},
}

func testHookRewrites(t *env) {
	hook := func(_ context.Context, session string, e *event.Event) error {
		e.Data = bytes.ReplaceAll(e.Data, []byte("hunter2"), []byte("***"))
		e.Cost = 3
		return e.SetMetadata("seen_in", session)
	}
	l := t.LogOver(t.Store(), eventlog.Options{Hook: hook})
	secret := suite.User("my password is hunter2")
	head := t.Append(l, "a", eventlog.New(), secret)
	t.WantEqual("head of the retry", head, t.Append(l, "a", eventlog.New(), secret))
	e := t.Read(t.Reopen(), "a", eventlog.All())[0]
	t.WantEqual("data", strings.ReplaceAll(string(secret.Data), "hunter2", "***"), string(e.Data))
	t.WantEqual("metadata", `{"seen_in":"a"}`, string(e.Metadata))
	t.WantEqual("cost", event.Cost(3), e.Cost)
	t.WantEqual("the caller's own event", true, bytes.Contains(secret.Data, []byte("hunter2")))
}

var errUnwanted = errors.New("unwanted")

func testHookRefuses(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
		if string(e.Data) == `{"n":2}` {
			return errUnwanted
		}
		return nil
	}})
	t.Append(l, "a", eventlog.New(), suite.Note(1))
	err := t.WantAppendError(eventlog.ErrRefused, l, "a", eventlog.Any(), suite.Notes(4)...)
	t.WantErr(errUnwanted, err)
	t.WantAppendError(eventlog.ErrRefused, l, "b", eventlog.New(), suite.Note(2))
	t.WantMissing(l, "b")
}

func testBodyHook(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 300, BodyHook: func(_ context.Context, body io.Reader) (io.Reader, error) {
		b, err := io.ReadAll(body)
		if bytes.Contains(b, []byte("unwanted")) {
			return nil, errUnwanted
		}
		return bytes.NewReader(bytes.ToUpper(b)), err
	}})
	ref, err := l.PutBlob(t.Ctx, strings.NewReader("a body"))
	t.Must(err)
	t.WantEqual("body", "A BODY", t.Blob(l, ref.Blob))
	t.WantEqual("digest", event.DigestOf([]byte("A BODY")), ref.Blob)
	_, err = l.PutBlob(t.Ctx, strings.NewReader("unwanted"))
	t.WantErr(eventlog.ErrRefused, err)
	t.WantErr(errUnwanted, err)
	data := `"` + strings.Repeat("unwanted", 100) + `"`
	t.Append(l, "a", eventlog.New(), suite.NewEvent("test:note", data))
	t.WantEqual("spilled data", data, string(t.Read(l, "a", eventlog.All())[0].Data))
}

func testMaskedRetry(t *env) {
	mask := func(with string) *eventlog.Log {
		return t.LogOver(t.Store(), eventlog.Options{Hook: func(_ context.Context, _ string, e *event.Event) error {
			e.Data = bytes.ReplaceAll(e.Data, []byte("hunter2"), []byte(with))
			return e.MarkMasked("password")
		}})
	}
	secret := suite.User("my password is hunter2")
	head := t.Append(mask("[1]"), "a", eventlog.New(), secret)
	t.WantEqual("head with another mask", head, t.Append(mask("[2]"), "a", eventlog.New(), secret))
	t.WantEqual("head without a mask", head, t.Append(t.Main(), "a", eventlog.Any(), secret))
	other := secret
	other.Type = "test:note"
	t.WantAppendError(eventlog.ErrConflict, mask("[1]"), "a", eventlog.Any(), other)
	t.WantEqual("masked", true, t.Read(t.Main(), "a", eventlog.All())[0].Masked())
}

func testUpcast(t *env) {
	t.Append(t.Main(), "a", eventlog.New(), suite.NewEvent("test:order", `1.0`), suite.NewEvent("test:order/2", `{"n":2}`), suite.NewEvent("test:order/3", `[3]`), suite.Note(4))
	lines := t.Lines(t.Main(), "a")
	wrap := func(format string) func(jsontext.Value) (jsontext.Value, error) {
		return func(data jsontext.Value) (jsontext.Value, error) { return fmt.Appendf(nil, format, data), nil }
	}
	l := t.LogOver(t.Store(), eventlog.Options{Upcasters: []event.Upcaster{
		{From: "test:order/2", To: "test:order/3", Cast: wrap(`[%s]`)},
		{From: "test:order", To: "test:order/2", Cast: wrap(`{"n":%s}`)},
	}})
	for _, r := range []eventlog.Range{eventlog.All(), eventlog.Last(4)} {
		var got []string
		for _, e := range t.Read(l, "a", r) {
			got = append(got, string(e.Type)+" "+string(e.Data))
		}
		t.WantEqual("events", []string{`test:order/3 [{"n":1.0}]`, `test:order/3 [{"n":2}]`, `test:order/3 [3]`, `test:note {"n":4}`}, got)
	}
	t.WantEqual("lines", lines, t.Lines(l, "a"))
	t.WantVerified(l, "a")
}

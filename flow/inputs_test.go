package flow_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/flow"
	"github.com/convlog/convlog/store/memory"
)

func TestInputsAreSeenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: twice(echo(gate))}
		defer a.Log.Close()
		in := func(id string, steer bool) flow.Input {
			x := flow.Text(id)
			x.ID, x.Steer = id, steer
			return x
		}
		c := start(t, a)
		for range 2 {
			if err := c.Send(in("one", false)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for range 2 {
			if err := c.Send(in("steer", true)); err != nil {
				t.Fatal(err)
			}
			if err := c.Send(in("next", false)); err != nil {
				t.Fatal(err)
			}
			if err := post(t.Context(), a.Log, "s", in("posted", false)); err != nil {
				t.Fatal(err)
			}
		}
		close(gate)
		time.Sleep(time.Second)
		if err := post(t.Context(), a.Log, "s", in("steer", true)); err != nil {
			t.Fatal(err)
		}
		out := finish(t, c)
		var said []string
		for _, m := range out.Messages {
			said = append(said, string(m.Role[0])+":"+m.Text())
		}
		want := "u:one a:one u:steer a:one|steer u:next a:one|steer|next a:one|steer|next u:posted a:one|steer|next|posted a:one|steer|next|posted"
		if got := strings.Join(said, " "); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

func TestAnInputPostedWhileNobodyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &flow.Agent[notes]{Name: "a", Log: eventlog.Open(memory.New()), Turn: twice(echo(nil))}
		defer a.Log.Close()
		finish(t, start(t, a))
		if err := post(t.Context(), a.Log, "s", flow.Text("hello")); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := a.Serve(ctx); err != nil {
			t.Fatal(err)
		}
		info, err := flow.Info(t.Context(), a.Log, "s")
		if err != nil || info.Status != flow.StatusFinished || len(info.Inbox) != 0 {
			t.Fatalf("%+v %v", info, err)
		}
	})
}

func TestAnInputOfAFailedTurnIsPostedAgain(t *testing.T) {
	ran := 0
	a := &flow.Agent[notes]{Name: "a", Log: openLog(t), Turn: func(context.Context, *flow.Turn[notes]) error {
		if ran++; ran == 1 {
			runtime.Goexit()
		}
		return nil
	}}
	in := flow.Text("go")
	in.ID = "x"
	var failed *flow.TurnError
	if _, err := a.Run(t.Context(), "s", in); !errors.As(err, &failed) {
		t.Fatal(err)
	}
	for range 2 {
		if err := post(t.Context(), a.Log, "s", in); err != nil {
			t.Fatal(err)
		}
		if _, err := resume(t.Context(), a, "s"); err != nil || ran != 2 {
			t.Fatal(err, ran)
		}
	}
}

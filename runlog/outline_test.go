package runlog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/garden"
	"github.com/convlog/convlog/runlog"
	"github.com/convlog/convlog/store/memory"
)

// Law: an outline is the run without its content.
func TestOutlines(t *testing.T) {
	garden.OnLives(t, func(r *rapid.T, l *garden.Life) {
		for _, name := range l.Names {
			run, err := runlog.Load(garden.Bg, l.Log, name)
			l.Allow(err)
			outline, err := runlog.Load(garden.Bg, l.Log, name, runlog.Options{Outline: true})
			l.Allow(err)
			removeContent(run)
			keepTexts(run)
			keepTexts(outline)
			if diff := cmp.Diff(run, outline, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(runlog.Run{}, runlog.Turn{}, runlog.Op{}, event.BlobRef{})); diff != "" {
				r.Fatalf("outline of %s (-want +got):\n%s", name, diff)
			}
		}
	})
}

// each visits a run and the runs below it, and all their ops.
func each(run *runlog.Run, visit func(*runlog.Run), visitOp func(*runlog.Op)) {
	visit(run)
	ops := slices.Clone(run.Ops)
	for _, t := range run.Turns {
		ops = append(ops, t.Ops...)
	}
	for _, op := range ops {
		visitOp(op)
		for _, c := range op.Children {
			if c.Run != nil {
				each(c.Run, visit, visitOp)
			}
		}
	}
}

// removeContent removes all but the messages.
func removeContent(run *runlog.Run) {
	each(run, func(run *runlog.Run) {
		run.Logs, run.Accounting = nil, nil
		for _, t := range run.Turns {
			t.Context, t.Logs, t.Accounting = nil, nil, nil
		}
	}, func(op *runlog.Op) { op.Request, op.Response, op.Logs, op.Accounting = nil, nil, nil, nil })
}

// keepTexts removes all but the roles and the texts of messages.
func keepTexts(run *runlog.Run) {
	text := func(m *event.Message) {
		*m = event.Message{Role: m.Role, Parts: []event.Part{event.Text(m.Text())}}
	}
	each(run, func(run *runlog.Run) {
		for _, t := range run.Turns {
			for i := range t.Input {
				text(&t.Input[i])
			}
			if t.Output != nil {
				text(t.Output)
			}
		}
	}, func(*runlog.Op) {})
}

// An outline has the beginning of a long text, in whole characters.
func TestOutlineOfALongText(t *testing.T) {
	g := garden.Plant(t, eventlog.Open(memory.New()), nil)
	g.Append("s", event.UserMessage(strings.Repeat("ä  ", 1000)), event.AssistantMessage(strings.Repeat("ö\n", 1000)))
	run, err := runlog.Load(garden.Bg, g.Log, "s", runlog.Options{Outline: true})
	g.Allow(err)
	turn := run.Turns[0]
	for want, text := range map[string]string{"ä ": turn.Input[0].Text(), "ö ": turn.Output.Text()} {
		if len(text) < 500 || len(text) > 512 || !strings.HasPrefix(strings.Repeat(want, 1000), text) {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

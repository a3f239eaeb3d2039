package projection_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// foldHistory applies events to a history. Their seqs follow seq.
func foldHistory(t interface{ Fatal(...any) }, h *projection.HistoryState, seq int64, payloads ...event.Payload) {
	for _, p := range payloads {
		e := event.New(p)
		seq++
		e.Seq = seq
		if err := projection.History().Apply(h, &e); err != nil {
			t.Fatal(err)
		}
	}
}

// executionsOf returns the seqs of the executions in the encoded history.
func executionsOf(t interface{ Fatal(...any) }, h *projection.HistoryState) (seqs []int64) {
	body, err := projection.History().Encode(h)
	var state struct {
		Executions [][]jsontext.Value `json:"executions"`
	}
	if err == nil {
		err = json.Unmarshal(body, &state)
	}
	for _, x := range state.Executions {
		var seq int64
		if err == nil {
			err = json.Unmarshal(x[1], &seq)
		}
		seqs = append(seqs, seq)
	}
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

// execution is an execution of the model of TestExecutionsUntilTheirResults.
type execution struct {
	seq  int64
	call string
}

// An execution stays until a message has the result of its call, and forever if a
// request was rendered before the result. Copies and decoded states keep theirs.
func TestExecutionsUntilTheirResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h projection.HistoryState
		var rendered, open []execution
		calls := rapid.SampledFrom([]int{2, 40}).Draw(t, "calls")
		for seq := int64(1); seq <= 150; seq++ {
			call := fmt.Sprint("call ", rapid.IntRange(0, calls).Draw(t, "call"))
			switch rapid.SampledFrom([]rune("xxxxxrrrrsck")).Draw(t, "event") {
			case 'x':
				foldHistory(t, &h, seq-1, event.ToolCompletion{CallID: call, Name: "n"})
				open = append(open, execution{seq, call})
			case 'r':
				foldHistory(t, &h, seq-1, event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(call, "n")}})
				open = slices.DeleteFunc(open, func(x execution) bool { return x.call == call })
			case 's': // the message makes the step_started a freeze
				foldHistory(t, &h, seq-1, event.Message{Role: event.User, Parts: []event.Part{event.Text("go")}})
				seq++
				foldHistory(t, &h, seq-1, event.StepStart{})
				rendered, open = append(rendered, open...), nil
			case 'c':
				foldHistory(t, &h, seq-1, event.Compaction{Summary: "s", Covers: event.Stretch{From: 1, To: seq / 2}})
				open = slices.DeleteFunc(append(rendered, open...), func(x execution) bool { return x.seq <= seq/2 })
				rendered = nil
			case 'k':
				copied := h
				want := executionsOf(t, &copied)
				foldHistory(t, &h, seq-1, event.ToolCompletion{CallID: call, Name: "n"})
				open = append(open, execution{seq, call})
				if got := executionsOf(t, &copied); !slices.Equal(got, want) {
					t.Fatalf("the copy has the executions %v, before: %v", got, want)
				}
				body, err := projection.History().Encode(&h)
				if err == nil {
					h, err = projection.History().Decode(body)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			var want []int64
			for _, x := range slices.Concat(rendered, open) {
				want = append(want, x.seq)
			}
			if got := executionsOf(t, &h); !slices.Equal(got, want) {
				t.Fatalf("event %d: the history has the executions %v, want %v", seq, got, want)
			}
		}
	})
}

// The bytes that a history allocates per event do not grow with the events. (Growing
// lists double the bytes at most.)
func TestFoldingAHistoryAllocatesInProportion(t *testing.T) {
	completed := func(i int) event.Payload { return event.ToolCompletion{CallID: fmt.Sprint("call ", i), Name: "n"} }
	result := func(i int) event.Payload {
		return event.Message{Role: event.Tool, Parts: []event.Part{event.ToolResult(fmt.Sprint("call ", i), "n")}}
	}
	for name, payload := range map[string]func(i, n int) event.Payload{
		"each execution, then its result": func(i, n int) event.Payload { return []func(int) event.Payload{completed, result}[i%2](i / 2) },
		"all executions, then the results": func(i, n int) event.Payload {
			if i < n/2 {
				return completed(i)
			}
			return result(i - n/2)
		},
		"results of other calls": func(i, n int) event.Payload {
			if i%2 == 0 {
				return completed(i)
			}
			return result(-i)
		},
		"a request before each result": func(i, n int) event.Payload {
			switch i % 4 {
			case 0:
				return completed(i)
			case 1:
				return completed(-i)
			case 2:
				return result(i - 2)
			default:
				return event.StepStart{}
			}
		},
	} {
		perEvent := func(n int) float64 {
			events := make([]event.Event, n)
			for i := range events {
				events[i] = event.New(payload(i, n))
				events[i].Seq = int64(i + 1)
			}
			var h projection.HistoryState
			return allocated(func() {
				for i := range events {
					if err := projection.History().Apply(&h, &events[i]); err != nil {
						t.Fatal(err)
					}
				}
			}) / float64(n)
		}
		if few, many := perEvent(1000), perEvent(16_000); many > 2*few {
			t.Errorf("%s: %.0f bytes per event at 1,000 events, %.0f at 16,000", name, few, many)
		}
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc - before.TotalAlloc)
}

package sweagent

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
)

// attemptsName is the member that holds the attempts of an agent that tries again.
// What stands around them repeats the best one.
const attemptsName = "attempts"

// theStart is what attempts follow: no item has this name.
const theStart = "the start"

// bestOf is the index of the attempt that was chosen; -1 if none was.
func bestOf(info jsontext.Value) int {
	told := struct {
		Best *int `json:"best_attempt_idx"`
	}{}
	if len(info) == 0 || json.Unmarshal(info, &told) != nil || told.Best == nil {
		return -1
	}
	return *told.Best
}

// withAttempts puts the items of attempts before those of the best, which is left
// out among them. Each is a branch from the start.
func withAttempts(attempts []interop.Record, best int, chosen []document.Item) (all []document.Item, err error) {
	if len(attempts) == 0 {
		return chosen, nil
	}
	for i := range attempts {
		if i == best && len(chosen) > 0 {
			continue
		}
		items, err := attempt(&attempts[i])
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	if len(chosen) > 0 {
		chosen[0].After, chosen[0].Label = theStart, "the best attempt"
	}
	return append(all, chosen...), nil
}

// attempt tells an attempt. What stands around its history is kept raw behind it.
func attempt(rec *interop.Record) ([]document.Item, error) {
	o, err := parts.Open(rec.Value)
	if err != nil {
		return []document.Item{document.Raw(*rec, "attempt")}, nil
	}
	t, err := tellerOf(rec, &o)
	if err != nil {
		return nil, err
	}
	t.model, t.ended = configOf(o.Peek("replay_config")).Agent.Model.Name, ended(o.Peek("info"))
	if err := t.tell(); err != nil {
		return nil, err
	}
	if rest := o.Rest(); rest != nil {
		t.items = append(t.items, document.Raw(document.Subrecord(rec, rest), "attempt"))
	}
	if len(t.items) > 0 {
		t.items[0].After, t.items[0].Label = theStart, "another attempt"
	}
	return t.items, nil
}

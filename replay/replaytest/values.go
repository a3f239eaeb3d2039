package replaytest

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// location is the path of a JSON value in an event.
type location struct {
	path string
	// name is the name of the nearest member above. Elements of an array have the
	// name of the array.
	name string
	// typed reports that names have the meaning of docs/FORMAT.md: the value is in a
	// payload of the vocabulary, and not in a value of a program or a model.
	typed bool
}

func (p location) member(name string) location {
	typed := p.typed && !slices.Contains(opaque, name)
	return location{path: p.path + "." + name, name: name, typed: typed}
}

func (p location) element(i int) location {
	p.path += fmt.Sprintf("[%d]", i)
	return p
}

// The meaning of member names in payloads.
var (
	// opaque members contain values of programs, models and providers.
	opaque = []string{"answer", "arguments", "detail", "extra", "labels", "patch", "result", "state", "value"}
	// identities contain ids that differ between runs, in any form.
	identities = []string{"call_id", "calls", "child_session_id", "cleared", "group", "id", "idempotency_key", "key", "parent",
		"response_id", "results", "session_id"}
	positions = []string{"from", "seq", "seqs", "through", "to"} // seqs
	times     = []string{"expires_at", "until"}
	durations = []string{"duration_ms"}
)

// generated matches ids that a program generates: ULIDs, UUIDs and hex digests.
var generated = regexp.MustCompile(`^(?:[0-7][0-9A-HJKMNP-TV-Z]{25}` +
	`|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}` +
	`|(?:sha256:)?[0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{40})$`)

// values compares two JSON values.
func (m *matcher) values(at location, recorded, got jsontext.Value) (*Divergence, error) {
	if m.ignores(at) {
		return nil, nil
	}
	if recorded.Kind() == got.Kind() {
		switch recorded.Kind() {
		case jsontext.KindBeginObject:
			return m.objects(at, recorded, got)
		case jsontext.KindBeginArray:
			return m.arrays(at, recorded, got)
		}
	}
	alike, err := m.scalars(at, recorded, got)
	if alike || err != nil {
		return nil, err
	}
	return &Divergence{Member: at.path, RecordedValue: string(recorded), GotValue: string(got)}, nil
}

func (m *matcher) ignores(at location) bool {
	return slices.Contains(m.opts.IgnoreMembers, at.name) || slices.Contains(m.opts.IgnoreMembers, at.path) ||
		at.typed && slices.Contains(durations, at.name)
}

func (m *matcher) objects(at location, recorded, got jsontext.Value) (*Divergence, error) {
	var want, have map[string]jsontext.Value
	if err := unmarshal(recorded, &want, got, &have); err != nil {
		return nil, err
	}
	names := slices.Collect(maps.Keys(want))
	for name := range have {
		if _, both := want[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if d, err := m.pair(at.member(name), want[name], have[name]); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

func (m *matcher) arrays(at location, recorded, got jsontext.Value) (*Divergence, error) {
	var want, have []jsontext.Value
	if err := unmarshal(recorded, &want, got, &have); err != nil {
		return nil, err
	}
	for i := range max(len(want), len(have)) {
		if d, err := m.pair(at.element(i), nth(want, i), nth(have, i)); d != nil || err != nil {
			return d, err
		}
	}
	return nil, nil
}

// pair compares members or elements. One of the two may be missing.
func (m *matcher) pair(at location, recorded, got jsontext.Value) (*Divergence, error) {
	if recorded != nil && got != nil {
		return m.values(at, recorded, got)
	}
	if m.ignores(at) {
		return nil, nil
	}
	return &Divergence{Member: at.path, RecordedValue: string(recorded), GotValue: string(got)}, nil
}

func (m *matcher) scalars(at location, recorded, got jsontext.Value) (alike bool, err error) {
	if recorded.Kind() != jsontext.KindString || got.Kind() != jsontext.KindString {
		if seq, known := m.seqIn(at, recorded); known {
			return seq == string(got), nil
		}
		return bytes.Equal(recorded, got), nil
	}
	var want, have string
	if err := unmarshal(recorded, &want, got, &have); err != nil {
		return false, err
	}
	switch {
	case generated.MatchString(want) && generated.MatchString(have), at.typed && slices.Contains(identities, at.name):
		return m.ids(want, have), nil
	case at.typed && slices.Contains(times, at.name):
		return isTime(want) && isTime(have), nil
	}
	return want == have, nil
}

// seqIn returns the seq of the run for a recorded seq. known is false if the number
// is no seq.
func (m *matcher) seqIn(at location, recorded jsontext.Value) (seq string, known bool) {
	if !at.typed || !slices.Contains(positions, at.name) {
		return "", false
	}
	n, err := strconv.ParseInt(string(recorded), 10, 64)
	if err != nil {
		return "", false
	}
	got, known := m.seqs[n]
	return strconv.FormatInt(got, 10), known
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

func nth(values []jsontext.Value, i int) jsontext.Value {
	if i < len(values) {
		return values[i]
	}
	return nil
}

func unmarshal(recorded jsontext.Value, want any, got jsontext.Value, have any) error {
	if err := json.Unmarshal(recorded, want); err != nil {
		return fmt.Errorf("recorded value: %w", err)
	}
	if err := json.Unmarshal(got, have); err != nil {
		return fmt.Errorf("value of the run: %w", err)
	}
	return nil
}

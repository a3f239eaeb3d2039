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

// place is where a JSON value stands in an event.
type place struct {
	path string
	// name is that of the nearest member above, which is also that of the
	// elements of an array.
	name string
	// typed says that names mean what docs/FORMAT.md says: it is a payload of
	// the vocabulary, and no value that a program or a model put into one.
	typed bool
}

func (p place) member(name string) place {
	typed := p.typed && !slices.Contains(foreign, name)
	return place{path: p.path + "." + name, name: name, typed: typed}
}

func (p place) element(i int) place {
	p.path += fmt.Sprintf("[%d]", i)
	return p
}

// What the names of members of payloads mean.
var (
	// foreign members hold values of programs, models and providers.
	foreign = []string{"answer", "arguments", "detail", "extra", "labels", "patch", "result", "state", "value"}
	// identities hold ids that differ between runs, whatever they look like.
	identities = []string{"call_id", "calls", "child_session_id", "cleared", "group", "id", "idempotency_key", "key", "parent",
		"response_id", "results", "session_id"}
	positions = []string{"from", "seq", "seqs", "through", "to"} // seqs
	moments   = []string{"expires_at", "until"}
	durations = []string{"duration_ms"}
)

// minted are texts that look like no person chose them.
var minted = regexp.MustCompile(`^(?:[0-7][0-9A-HJKMNP-TV-Z]{25}` +
	`|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}` +
	`|(?:sha256:)?[0-9a-f]{64}|[0-9a-f]{16}|[0-9a-f]{32}|[0-9a-f]{40})$`)

// values compares two JSON values.
func (m *matcher) values(at place, recorded, got jsontext.Value) (*Divergence, error) {
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

func (m *matcher) ignores(at place) bool {
	return slices.Contains(m.opts.IgnoreMembers, at.name) || slices.Contains(m.opts.IgnoreMembers, at.path) ||
		at.typed && slices.Contains(durations, at.name)
}

func (m *matcher) objects(at place, recorded, got jsontext.Value) (*Divergence, error) {
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

func (m *matcher) arrays(at place, recorded, got jsontext.Value) (*Divergence, error) {
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

// pair compares members or elements, of which one may be missing.
func (m *matcher) pair(at place, recorded, got jsontext.Value) (*Divergence, error) {
	if recorded != nil && got != nil {
		return m.values(at, recorded, got)
	}
	if m.ignores(at) {
		return nil, nil
	}
	return &Divergence{Member: at.path, RecordedValue: string(recorded), GotValue: string(got)}, nil
}

func (m *matcher) scalars(at place, recorded, got jsontext.Value) (alike bool, err error) {
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
	case minted.MatchString(want) && minted.MatchString(have), at.typed && slices.Contains(identities, at.name):
		return m.ids(want, have), nil
	case at.typed && slices.Contains(moments, at.name):
		return isTime(want) && isTime(have), nil
	}
	return want == have, nil
}

// seqIn is the seq of the run's event that stands in the place of the one whose
// seq is recorded, if that is what the number is.
func (m *matcher) seqIn(at place, recorded jsontext.Value) (seq string, known bool) {
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

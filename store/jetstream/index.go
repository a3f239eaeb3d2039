package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/convlog/convlog/event"
)

// index says which frames of a session were replaced, and by which messages. It is a
// message of its own, and the frames after it name its sequence. Replacing messages are
// invisible until a frame names their index.
type index struct {
	at     uint64 // sequence of the message; 0 if the session has no index
	base   uint64 // a repair replaced all frames up to this sequence
	spans  []span // ordered by first
	copies []uint64
	marks  []uint64       // marks that are untrue since the index is visible
	old    map[uint64]int // the span of a replaced frame
}

// span is a replaced frame: its events, its sequence (0 if it is before base), and the
// sequence of the message that replaces it.
type span struct {
	first, count int64
	old, at      uint64
}

var errIndex = errors.New("the index of replaced messages is missing or malformed")

// index reads the index of a frame.
func (st *stream) index(ctx context.Context, session string, at uint64) (*index, error) {
	if at == 0 {
		return &index{}, nil
	}
	m, err := st.at(ctx, at)
	if err != nil {
		return nil, err
	}
	if m == nil || m.subject != st.of(session, indexSubject) {
		return nil, st.damage(session, at, 0, errIndex)
	}
	ix, err := parseIndex(m)
	return ix, st.damage(session, at, 0, err)
}

// parseIndex decodes an index. Each line has one entry.
func parseIndex(m *message) (*index, error) {
	ix := &index{at: m.at}
	for text := range strings.Lines(string(m.body)) {
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		numbers := make([]uint64, 4)
		for i, field := range fields[1:] {
			var err error
			if i >= len(numbers) {
				return nil, errIndex
			}
			if numbers[i], err = strconv.ParseUint(field, 10, 62); err != nil {
				return nil, errIndex
			}
		}
		switch fields[0] {
		case "version":
			if numbers[0] > formatVersion {
				return nil, &event.VersionError{What: "jetstream index", Got: int(numbers[0]), Max: formatVersion}
			}
		case "base":
			ix.base = numbers[0]
		case "copy":
			ix.copies = append(ix.copies, numbers[0])
		case "mark":
			ix.marks = append(ix.marks, numbers[0])
		case "span":
			ix.spans = append(ix.spans, span{int64(numbers[0]), int64(numbers[1]), numbers[2], numbers[3]})
		}
	}
	ix.arrange()
	if slices.ContainsFunc(ix.marks, func(at uint64) bool { return at >= m.at }) {
		return nil, errIndex
	}
	for i, s := range ix.spans {
		if s.first < 1 || s.count < 1 || i > 0 && ix.spans[i-1].next() > s.first || s.at >= m.at || s.old >= m.at {
			return nil, errIndex
		}
	}
	return ix, nil
}

// arrange orders the spans, and makes them easy to find.
func (ix *index) arrange() {
	slices.SortFunc(ix.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	ix.old = make(map[uint64]int)
	for i, s := range ix.spans {
		if s.old > 0 {
			ix.old[s.old] = i
		}
	}
}

// encode renders the index as the body of a message.
func (ix *index) encode() []byte {
	b := fmt.Appendf(nil, "version %d\nbase %d\n", formatVersion, ix.base)
	for _, at := range ix.copies {
		b = fmt.Appendf(b, "copy %d\n", at)
	}
	for _, at := range ix.marks {
		b = fmt.Appendf(b, "mark %d\n", at)
	}
	for _, s := range ix.spans {
		b = fmt.Appendf(b, "span %d %d %d %d\n", s.first, s.count, s.old, s.at)
	}
	return b
}

func (s *span) next() int64 { return s.first + s.count }

// find returns the span that has an event, or nil.
func (ix *index) find(seq int64) *span {
	i, found := slices.BinarySearchFunc(ix.spans, seq, func(s span, seq int64) int { return cmp.Compare(s.first, seq) })
	if !found {
		i--
	}
	if i < 0 || ix.spans[i].next() <= seq {
		return nil
	}
	return &ix.spans[i]
}

// hides reports whether a frame was replaced.
func (ix *index) hides(at uint64) bool {
	_, replaced := ix.old[at]
	return replaced || at <= ix.base
}

// replacing reads the message of a span as a frame. It is nil if the message is missing. A
// frame keeps the sequence of the original, which other frames name.
func (v *view) replacing(ctx context.Context, s *span) (*frame, error) {
	m, err := v.stream.at(ctx, s.at)
	if m == nil || err != nil {
		return nil, err
	}
	if m.subject != v.stream.of(v.session, replacedSubject) {
		return nil, v.stream.damage(v.session, s.at, s.first, errFrame)
	}
	f, removed, err := parseFrame(m)
	if err == nil && (removed || f.first != s.first || f.count != s.count) {
		err = errFrame
	}
	if s.old > 0 {
		f.at = s.old
	}
	return f, v.stream.damage(v.session, s.at, s.first, err)
}

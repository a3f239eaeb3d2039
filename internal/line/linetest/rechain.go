// Package linetest forges lines, for tests of what reads them.
package linetest

import (
	"bytes"
	"fmt"
	"hash/crc32"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
)

// Rechain gives every line of a stream the hash and the crc that follow from the lines
// before it, as a forger would who knows the format: only content can be wrong with
// the lines then. Lines without a valid envelope stay as they are.
func Rechain(stream []byte) []byte {
	r := rechainer{last: map[string]line.Hash{}, now: map[point]line.Hash{}}
	var out []byte
	for text := range bytes.Lines(stream) {
		out = append(append(out, r.line(bytes.TrimRight(text, "\r\n"))...), '\n')
	}
	return out
}

// point names an event by the hash it had.
type point struct {
	seq  int64
	hash line.Hash
}

type rechainer struct {
	last map[string]line.Hash // of a session's newest line
	now  map[point]line.Hash  // the hash that replaced another
}

func (r *rechainer) line(text []byte) []byte {
	l, ok := parse(text)
	if !ok {
		return text
	}
	was, prev := l.Hash(), r.last[l.Session]
	if l.Type == "session_forked" && prev == (line.Hash{}) {
		var fork struct {
			Seq  int64  `json:"seq"`
			Hash string `json:"hash"`
		}
		if json.Unmarshal(l.Data, &fork) == nil {
			if prev, _ = line.ParseHash(fork.Hash); fork.Seq > 0 {
				prev = r.now[point{fork.Seq, prev}]
				l.Data = bytes.Replace(l.Data, []byte(fork.Hash), fmt.Appendf(nil, "%x", prev[:]), 1)
			}
		}
	}
	fresh := l.Reseal(prev)
	if l, ok = parse(fresh); ok {
		r.last[l.Session], r.now[point{l.Seq, was}] = l.Hash(), l.Hash()
	}
	return fresh
}

// parse reads a line whose crc may be wrong.
func parse(text []byte) (l line.Line, ok bool) {
	if l.Parse(withCRC(text), line.Strings{}) == nil {
		return l, true
	}
	members, err := rawjson.Members(text)
	if err != nil {
		return l, false
	}
	canonical, err := line.Canonicalize(members)
	return l, err == nil && l.Parse(withCRC(canonical), line.Strings{}) == nil
}

func withCRC(text []byte) []byte {
	const body = len(`{"crc":"00000000",`)
	if len(text) < body {
		return text
	}
	sum := crc32.Checksum(text[body:], crc32.MakeTable(crc32.Castagnoli))
	return append(fmt.Appendf(nil, `{"crc":"%08x",`, sum), text[body:]...)
}

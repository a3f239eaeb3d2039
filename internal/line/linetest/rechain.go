// Package linetest forges lines for tests of verification.
package linetest

import (
	"bytes"
	"fmt"
	"hash/crc32"

	"github.com/go-json-experiment/json"

	"github.com/convlog/convlog/internal/line"
	"github.com/convlog/convlog/internal/rawjson"
)

// Rechain recomputes the hash and the crc of every line of a stream, like a forger who
// knows the format. Afterwards only the content of the lines can be wrong. Lines
// without a valid envelope stay unchanged.
func Rechain(stream []byte) []byte {
	r := rechainer{last: map[string]line.Hash{}, replaced: map[eventKey]line.Hash{}}
	var out []byte
	for text := range bytes.Lines(stream) {
		out = append(append(out, r.line(bytes.TrimRight(text, "\r\n"))...), '\n')
	}
	return out
}

// eventKey identifies an event by its seq and its old hash.
type eventKey struct {
	seq  int64
	hash line.Hash
}

type rechainer struct {
	last     map[string]line.Hash   // newest hash of each session
	replaced map[eventKey]line.Hash // the new hash of each event
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
				prev = r.replaced[eventKey{fork.Seq, prev}]
				l.Data = bytes.Replace(l.Data, []byte(fork.Hash), fmt.Appendf(nil, "%x", prev[:]), 1)
			}
		}
	}
	fresh := l.Reseal(prev)
	if l, ok = parse(fresh); ok {
		r.last[l.Session], r.replaced[eventKey{l.Seq, was}] = l.Hash(), l.Hash()
	}
	return fresh
}

// parse parses a line with any crc.
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

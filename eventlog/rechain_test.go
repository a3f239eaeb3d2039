package eventlog

import (
	"bytes"
	"encoding/hex"
)

// Rechain gives every line of a stream that has the form of an event the hash
// and the crc that follow from the lines before it, as someone would who knows
// the format: only what the content says can be wrong with it then.
func Rechain(stream []byte) []byte {
	r := rechainer{last: map[string]Hash{}, at: map[Head]Hash{}}
	var out []byte
	for line := range bytes.Lines(stream) {
		out = append(append(out, r.line(bytes.TrimRight(line, "\r\n"))...), '\n')
	}
	return out
}

type rechainer struct {
	last map[string]Hash
	at   map[Head]Hash // what an event's hash became
}

func (r *rechainer) line(line []byte) []byte {
	e, ok := slice(withCRC(line), "")
	if !ok {
		members, err := splitMembers(line)
		if err != nil {
			return line
		}
		if e, ok = slice(withCRC(render(members)), ""); !ok {
			return line
		}
	}
	was, prev := e.Head(), r.last[e.SessionID]
	if f, forked, err := e.Fork(); forked && err == nil && prev == (Hash{}) {
		if prev = f.Hash; f.Seq > 0 {
			prev = r.at[Head{Seq: f.Seq, Hash: f.Hash}]
			copy(e.Data, bytes.Replace(e.Data, []byte(f.Hash.String()), []byte(prev.String()), 1))
		}
	}
	h := chain(prev, e.header(), e.commit())
	hex.Encode(e.line[e.off.hash:], h[:])
	finish(e.line)
	r.last[e.SessionID], r.at[was] = h, h
	return e.line
}

package line

import (
	"bytes"
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// slicer parses a canonical line from left to right. Its methods return false at a
// part that is not canonical.
type slicer struct {
	text []byte
	at   int
}

func (s *slicer) header(l *Line, known Strings) bool {
	if !s.literal(`"v":1,"seq":`) {
		return false
	}
	var ok bool
	if l.Seq, ok = s.integer(); !ok || l.Seq < 1 {
		return false
	}
	if !s.literal(`,"id":"`) || !s.ulid(&l.ID) || !s.literal(`","session_id":`) {
		return false
	}
	if l.Session, ok = s.likely(known.Session); !ok && !s.name(&l.Session, MaxSession) {
		return false
	}
	if !s.literal(`,"type":`) {
		return false
	}
	if l.Type, ok = s.known(known.Types); !ok && !s.name(&l.Type, MaxType) {
		return false
	}
	if !s.literal(`,"timestamp":"`) || len(s.text)-s.at < timestampLen {
		return false
	}
	if l.Timestamp, ok = parseTimestamp(s.text[s.at : s.at+timestampLen]); !ok {
		return false
	}
	s.at += timestampLen
	return s.literal(`"`) && s.optionals(l)
}

// optionals parses cost, more and cut, the end of the header.
func (s *slicer) optionals(l *Line) bool {
	if s.literal(`,"cost":`) {
		token := s.token()
		cost, ok := ParseCost(string(token))
		if !ok || cost <= 0 || string(AppendCost(nil, cost)) != string(token) {
			return false
		}
		l.Cost = cost
	}
	if s.literal(`,"more":`) {
		more, ok := s.integer()
		if !ok || more < 1 || more > math.MaxInt32 {
			return false
		}
		l.More = int32(more)
	}
	if s.literal(`,"cut":{"bytes":`) {
		var ok bool
		if l.Cut.Bytes, ok = s.integer(); !ok || l.Cut.Bytes < 1 {
			return false
		}
		if !s.literal(`,"sha256":"`) || !s.hex(l.Cut.SHA256[:]) || !s.literal(`"}`) {
			return false
		}
	}
	l.at.headerEnd = uint32(s.at)
	return true
}

func (s *slicer) chain(l *Line) bool {
	if s.literal(`,"salt":"`) {
		if !s.hexDigits(32) || !s.literal(`"`) {
			return false
		}
	} else {
		l.Redacted = true
	}
	if !s.literal(`,"hash":"`) {
		return false
	}
	l.at.hash = uint32(s.at)
	return s.hexDigits(64) && s.literal(`"`)
}

// envelope parses blobs, metadata and unknown members.
func (s *slicer) envelope(l *Line) bool {
	if s.literal(`,"blobs":[`) && !s.blobs(l) {
		return false
	}
	l.at.metaStart, l.at.metaEnd = uint32(s.at), uint32(s.at)
	if !s.literal(`,"`) {
		return false
	}
	s.at -= 2
	start := s.at + 1
	if s.literal(`,"metadata":`) {
		value := s.at
		if !s.skip() || s.text[value] != '{' {
			return false
		}
		l.Metadata = s.text[value:s.at:s.at]
	}
	extras := s.at + 1
	for !s.atPayload() {
		if !s.literal(`,`) || !s.unknownName() || !s.literal(`:`) || !s.skip() {
			return false
		}
	}
	if s.at > extras {
		l.Extras = s.text[extras:s.at:s.at]
	}
	if s.at > start {
		l.at.metaStart, l.at.metaEnd = uint32(start), uint32(s.at)
	}
	return true
}

func (s *slicer) blobs(l *Line) bool {
	for {
		d, ok := s.string()
		if !ok {
			return false
		}
		if _, ok := DigestSum(d); !ok || len(l.Blobs) > 0 && l.Blobs[len(l.Blobs)-1] >= d {
			return false
		}
		l.Blobs = append(l.Blobs, d)
		if s.literal(`]`) {
			return true
		}
		if !s.literal(`,`) {
			return false
		}
	}
}

func (s *slicer) atPayload() bool {
	rest := s.text[s.at:]
	return bytes.HasPrefix(rest, []byte(dataMember)) || bytes.HasPrefix(rest, []byte(digestMember)) ||
		bytes.HasPrefix(rest, []byte(commitMember))
}

// unknownName skips the name of an unknown member.
func (s *slicer) unknownName() bool {
	start := s.at
	if s.at >= len(s.text) || s.text[s.at] != '"' || !s.skip() {
		return false
	}
	quoted := s.text[start:s.at]
	if bytes.IndexByte(quoted, '\\') < 0 {
		return !KnownMember(string(quoted[1 : len(quoted)-1]))
	}
	name, err := jsontext.AppendUnquote(nil, quoted)
	return err == nil && !KnownMember(string(name))
}

func (s *slicer) payload(l *Line) bool {
	last := len(s.text) - 1
	if s.text[last] != '}' {
		return false
	}
	switch {
	case l.Redacted:
		return s.kept(l)
	case s.literal(dataMember):
		l.Data = s.text[s.at:last:last]
		return len(l.Data) > 0
	case s.literal(digestMember):
		end := s.at + DigestLen
		if end > len(s.text) {
			return false
		}
		l.Digest = string(s.text[s.at:end])
		s.at = end
		if _, ok := DigestSum(l.Digest); !ok || !s.literal(`","bytes":`) {
			return false
		}
		var ok bool
		l.Bytes, ok = s.integer()
		return ok && s.at == last
	default:
		return false
	}
}

func (s *slicer) kept(l *Line) bool {
	if l.Blobs != nil || l.at.metaEnd > l.at.metaStart || !s.literal(commitMember) {
		return false
	}
	if !s.hexDigits(64) || !s.literal(keptMember) {
		return false
	}
	start := s.at
	if !s.skip() || s.at != len(s.text)-1 || s.text[start] != '{' {
		return false
	}
	l.Kept = s.text[start:s.at:s.at]
	return true
}

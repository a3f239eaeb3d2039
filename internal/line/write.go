package line

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
)

// Append appends the rendered line to dst, without newline. prev is the hash of the
// previous line. Data and metadata must be compact, and blobs must be sorted. A
// redacted line keeps its commit and ignores salt. Any other line is then the same as
// if it were parsed from the new bytes: it shares them.
func (l *Line) Append(dst []byte, prev Hash, salt [16]byte) []byte {
	start := len(dst)
	dst = l.appendHeader(append(dst, `{"crc":"00000000",`...))
	at := offsets{headerEnd: uint32(len(dst) - start)}
	header := Hash(sha256.Sum256(dst[start+bodyStart:]))
	if l.Redacted {
		c := l.Commit()
		return finish(appendErased(dst, Link{header, c}.After(prev), c, l.Kept), start)
	}
	dst = appendHex(dst, `,"salt":"`, salt[:])
	dst = append(dst, `,"hash":"`...)
	at.hash = uint32(len(dst) - start)
	dst = append(dst, zeroHex...)
	dst = append(dst, '"')
	dst = appendBlobs(dst, l.Blobs)
	at.metaStart = uint32(len(dst) - start)
	dst, meta := l.appendMeta(dst)
	at.metaEnd = uint32(len(dst) - start)
	dst = l.appendPayload(dst)
	dst = append(dst, '}')
	h := Link{header, commit(salt, meta, l.dataHash())}.After(prev)
	hex.Encode(dst[start+int(at.hash):], h[:])
	dst = finish(dst, start)
	l.share(dst[start:len(dst):len(dst)], at)
	return dst
}

// share makes the line refer to its rendered bytes.
func (l *Line) share(raw []byte, at offsets) {
	if at.metaEnd > at.metaStart {
		at.metaStart++ // the comma is not hashed
	}
	l.raw, l.at, l.Timestamp = raw, at, l.Timestamp.Round(0).UTC()
	metaData := len(`"metadata":`) + int(at.metaStart)
	l.Metadata = part(raw, metaData, metaData+len(l.Metadata))
	l.Extras = part(raw, int(at.metaEnd)-len(l.Extras), int(at.metaEnd))
	if l.Digest == "" {
		end := len(raw) - 1
		l.Data = part(raw, end-len(l.Data), end)
	}
}

// part is raw[start:end], or nil if that is empty.
func part(raw []byte, start, end int) []byte {
	if start == end {
		return nil
	}
	return raw[start:end:end]
}

// Reseal renders a parsed line again after prev, with the same salt. Use it after
// changing the session, more or data.
func (l *Line) Reseal(prev Hash) []byte {
	if l.Redacted {
		return l.Append(nil, prev, [16]byte{})
	}
	return l.Append(nil, prev, l.Salt())
}

// Relocate renders a parsed line again with the same hash. Use it after moving the
// data into a blob (Digest, Bytes, Blobs) or back (Data).
func (l *Line) Relocate() []byte {
	salt, h := l.Salt(), l.Hash()
	dst := append([]byte(`{"crc":"00000000",`), l.Header()...)
	dst = appendHex(dst, `,"salt":"`, salt[:])
	dst = appendHex(dst, `,"hash":"`, h[:])
	dst = appendBlobs(dst, l.Blobs)
	dst, _ = l.appendMeta(dst)
	dst = append(l.appendPayload(dst), '}')
	return finish(dst, 0)
}

// Erase renders a parsed line without its content. The header, hash and commit stay;
// kept, a JSON object, replaces the content.
func (l *Line) Erase(kept []byte) []byte {
	dst := append([]byte(`{"crc":"00000000",`), l.Header()...)
	return finish(appendErased(dst, l.Hash(), l.Commit(), kept), 0)
}

func appendErased(dst []byte, h, commit Hash, kept []byte) []byte {
	dst = appendHex(dst, `,"hash":"`, h[:])
	dst = hex.AppendEncode(append(dst, commitMember...), commit[:])
	return append(append(append(dst, keptMember...), kept...), '}')
}

func appendHex(dst []byte, member string, b []byte) []byte {
	return append(hex.AppendEncode(append(dst, member...), b), '"')
}

const zeroHex = "0000000000000000000000000000000000000000000000000000000000000000"

func (l *Line) appendHeader(dst []byte) []byte {
	dst = append(dst, `"v":1,"seq":`...)
	dst = strconv.AppendInt(dst, l.Seq, 10)
	dst = append(dst, `,"id":"`...)
	var id [26]byte
	_ = l.ID.MarshalTextTo(id[:])
	dst = append(dst, id[:]...)
	dst = append(dst, `","session_id":`...)
	dst = appendText(dst, l.Session)
	dst = append(dst, `,"type":`...)
	dst = appendText(dst, l.Type)
	dst = append(dst, `,"timestamp":"`...)
	dst = appendTimestamp(dst, l.Timestamp)
	dst = append(dst, '"')
	if l.Cost > 0 {
		dst = AppendCost(append(dst, `,"cost":`...), l.Cost)
	}
	if l.More > 0 {
		dst = strconv.AppendInt(append(dst, `,"more":`...), int64(l.More), 10)
	}
	if l.Cut.Bytes > 0 {
		dst = strconv.AppendInt(append(dst, `,"cut":{"bytes":`...), l.Cut.Bytes, 10)
		dst = append(appendHex(dst, `,"sha256":"`, l.Cut.SHA256[:]), '}')
	}
	return dst
}

var emptyHash = Hash(sha256.Sum256(nil))

// appendMeta appends metadata and unknown members and returns their hash.
func (l *Line) appendMeta(dst []byte) ([]byte, Hash) {
	if len(l.Metadata) == 0 && len(l.Extras) == 0 {
		return dst, emptyHash
	}
	from := len(dst) + 1
	if len(l.Metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), l.Metadata...)
	}
	if len(l.Extras) > 0 {
		dst = append(append(dst, ','), l.Extras...)
	}
	return dst, sha256.Sum256(dst[from:])
}

func (l *Line) appendPayload(dst []byte) []byte {
	if l.Digest != "" {
		dst = append(append(dst, digestMember...), l.Digest...)
		return strconv.AppendInt(append(dst, `","bytes":`...), l.Bytes, 10)
	}
	return append(append(dst, dataMember...), l.Data...)
}

func appendBlobs(dst []byte, blobs []string) []byte {
	for i, d := range blobs {
		if i == 0 {
			dst = append(dst, `,"blobs":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), d...), '"')
	}
	if len(blobs) > 0 {
		dst = append(dst, ']')
	}
	return dst
}

// appendText appends text as a JSON string. text must not have control characters.
func appendText(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, text[i])
	}
	return append(dst, '"')
}

// finish fills in the crc of the line from start to the end of dst.
func finish(dst []byte, start int) []byte {
	digits := crcHex(dst[start+bodyStart:])
	copy(dst[start+crcStart:], digits[:])
	return dst
}

func crcHex(body []byte) (digits [2 * crc32.Size]byte) {
	var sum [crc32.Size]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	hex.Encode(digits[:], sum[:])
	return digits
}

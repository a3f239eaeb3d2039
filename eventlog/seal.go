package eventlog

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strconv"
)

// digests of the hashed parts of an event, besides its header.
type commitment struct {
	salt [16]byte
	meta [sha256.Size]byte
	data [sha256.Size]byte
}

var emptySum = sha256.Sum256(nil)

// sum is H(salt ‖ H(meta) ‖ H(data)).
func (c *commitment) sum() Hash {
	var buf [16 + 2*sha256.Size]byte
	copy(buf[:], c.salt[:])
	copy(buf[16:], c.meta[:])
	copy(buf[16+sha256.Size:], c.data[:])
	return sha256.Sum256(buf[:])
}

// chain is hash(n) = H(hash(n−1) ‖ H(header) ‖ commit).
func chain(prev Hash, header []byte, commit Hash) Hash {
	return link{header: sha256.Sum256(header), commit: commit}.after(prev)
}

// link is what of an event enters the chain: H(header) and its commit.
type link struct{ header, commit Hash }

func (l link) after(prev Hash) Hash {
	var buf [3 * sha256.Size]byte
	copy(buf[:], prev[:])
	copy(buf[sha256.Size:], l.header[:])
	copy(buf[2*sha256.Size:], l.commit[:])
	return sha256.Sum256(buf[:])
}

// seal appends e's line to dst, without newline, and makes e the event of that
// line, chained to prev. e must have been validated and completed: its data
// and metadata are compact, its blobs sorted.
func (e *Event) seal(dst []byte, prev Hash, salt [16]byte) []byte {
	start := len(dst)
	dst = append(dst, `{"crc":"00000000",`...)
	dst = e.appendHeader(dst)
	c := commitment{salt: salt, meta: emptySum}
	header := dst[start+bodyStart:]
	e.off.headerEnd = uint32(len(dst) - start)
	dst = append(dst, `,"salt":"`...)
	dst = hex.AppendEncode(dst, salt[:])
	dst = append(dst, `","hash":"`...)
	e.off.hash = uint32(len(dst) - start)
	dst = append(dst, zeroHex...)
	dst = append(dst, '"')
	dst = appendBlobs(dst, e.Blobs())
	dst, c.meta = e.appendMeta(dst, start)
	dst, c.data = e.appendPayload(dst)
	dst = append(dst, '}')
	line := dst[start:len(dst):len(dst)]
	h := chain(prev, header[:int(e.off.headerEnd)-bodyStart], c.sum())
	hex.Encode(line[e.off.hash:], h[:])
	finish(line)
	e.adopt(line)
	return dst
}

const zeroHex = "0000000000000000000000000000000000000000000000000000000000000000"

func (e *Event) appendHeader(dst []byte) []byte {
	dst = append(dst, `"v":1,"seq":`...)
	dst = strconv.AppendInt(dst, e.Seq, 10)
	dst = append(dst, `,"id":"`...)
	var id [26]byte
	_ = e.ID.MarshalTextTo(id[:])
	dst = append(dst, id[:]...)
	dst = append(dst, `","session_id":`...)
	dst = appendText(dst, e.SessionID)
	dst = append(dst, `,"type":`...)
	dst = appendText(dst, string(e.Type))
	dst = append(dst, `,"timestamp":"`...)
	dst = appendTimestamp(dst, e.Timestamp)
	dst = append(dst, '"')
	if e.Cost > 0 {
		dst = e.Cost.append(append(dst, `,"cost":`...))
	}
	if e.more > 0 {
		dst = strconv.AppendInt(append(dst, `,"more":`...), int64(e.more), 10)
	}
	if cut := e.Cut(); cut != nil {
		dst = strconv.AppendInt(append(dst, `,"cut":{"bytes":`...), cut.Bytes, 10)
		dst = hex.AppendEncode(append(dst, `,"sha256":"`...), cut.SHA256[:])
		dst = append(dst, `"}`...)
	}
	return dst
}

func (e *Event) appendMeta(dst []byte, start int) ([]byte, [sha256.Size]byte) {
	e.off.metaStart, e.off.metaEnd = uint32(len(dst)-start), uint32(len(dst)-start)
	extras := e.Extras()
	if len(e.Metadata) == 0 && len(extras) == 0 {
		return dst, emptySum
	}
	from := len(dst) + 1
	if len(e.Metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), e.Metadata...)
	}
	if len(extras) > 0 {
		dst = append(append(dst, ','), extras...)
	}
	e.off.metaStart, e.off.metaEnd = uint32(from-start), uint32(len(dst)-start)
	return dst, sha256.Sum256(dst[from:])
}

func (e *Event) appendPayload(dst []byte) ([]byte, [sha256.Size]byte) {
	if d, size, ok := e.Spilled(); ok {
		sum, _ := d.sum()
		dst = append(append(dst, `,"digest":"`...), d...)
		return strconv.AppendInt(append(dst, `","bytes":`...), size, 10), sum
	}
	return append(append(dst, `,"data":`...), e.Data...), sha256.Sum256(e.Data)
}

func appendBlobs(dst []byte, blobs []Digest) []byte {
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

// appendText quotes a string that has no control characters.
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

// finish writes the crc of a complete line.
func finish(line []byte) {
	digits := crcHex(line[bodyStart:])
	copy(line[crcStart:], digits[:])
}

func crcHex(body []byte) (digits [2 * crc32.Size]byte) {
	var sum [crc32.Size]byte
	binary.BigEndian.PutUint32(sum[:], crc32.Checksum(body, castagnoli))
	hex.Encode(digits[:], sum[:])
	return digits
}

// adopt points e's content at its line, so that nothing else need be kept.
func (e *Event) adopt(line []byte) {
	e.line = line
	if len(e.Data) > 0 {
		if _, _, spilled := e.Spilled(); !spilled {
			from := len(line) - 1 - len(e.Data)
			e.Data = line[from : len(line)-1 : len(line)-1]
		}
	}
	if n := len(e.Metadata); n > 0 {
		from := int(e.off.metaStart) + len(`"metadata":`)
		e.Metadata = line[from : from+n : from+n]
	}
}

// header is the hashed header of a sealed event.
func (e *Event) header() []byte { return e.line[bodyStart:e.off.headerEnd] }

// salt is the salt of a sealed event that is not redacted, in hex.
func (e *Event) salt() []byte {
	end := int(e.off.hash) - len(`","hash":"`)
	return e.line[end-32 : end]
}

// link is what of a sealed event enters the chain.
func (e *Event) link() link { return link{header: sha256.Sum256(e.header()), commit: e.commit()} }

// commit recomputes H(salt ‖ H(meta) ‖ H(data)) from the line, or reads it from
// a redacted one.
func (e *Event) commit() Hash {
	var h Hash
	if e.Redacted() {
		decodeHex(h[:], e.line[e.off.commit:e.off.commit+64])
		return h
	}
	c := commitment{meta: emptySum}
	decodeHex(c.salt[:], e.salt())
	if e.off.metaEnd > e.off.metaStart {
		c.meta = sha256.Sum256(e.line[e.off.metaStart:e.off.metaEnd])
	}
	if d, _, spilled := e.Spilled(); spilled {
		c.data, _ = d.sum()
	} else {
		c.data = sha256.Sum256(e.Data)
	}
	return c.sum()
}

// chainsFrom reports whether e's hash follows from prev, the hash of the event
// before it in the lineage.
func (e *Event) chainsFrom(prev Hash) bool {
	return e.line != nil && chain(prev, e.header(), e.commit()) == e.Hash()
}

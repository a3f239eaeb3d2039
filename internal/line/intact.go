package line

import (
	"bytes"
	"hash/crc32"
	"math"
)

// Intact reports whether the bytes of a line, without its newline, have the checksum in
// their crc. Parse accepts some other lines too: it checks their canonical form.
func Intact(text []byte) bool {
	if len(text) < bodyStart || int64(len(text)) > math.MaxUint32 || string(text[:crcStart]) != `{"crc":"` ||
		text[bodyStart-2] != '"' || text[bodyStart-1] != ',' {
		return false
	}
	var crc [4]byte
	if !decodeHex(crc[:], text[crcStart:crcStart+8]) {
		return false
	}
	sum := uint32(crc[0])<<24 | uint32(crc[1])<<16 | uint32(crc[2])<<8 | uint32(crc[3])
	return crc32.Checksum(text[bodyStart:], castagnoli) == sum
}

// longestHeader is how far MayListBlobs looks for the hash.
const longestHeader = 1 << 10

// MayListBlobs returns false if an intact line has no member blobs. It does not parse the
// line: blobs follows hash in a canonical line, and no string has its text unescaped.
func MayListBlobs(text []byte) bool {
	const name, digits = `,"hash":"`, 2 * len(Hash{})
	i := bytes.Index(text[:min(len(text), longestHeader)], []byte(name))
	if i < 0 || len(text) < i+len(name)+digits {
		return true
	}
	after := text[i+len(name)+digits:]
	return !bytes.HasPrefix(after, []byte(`","metadata":`)) && !bytes.HasPrefix(after, []byte(`","data":`))
}

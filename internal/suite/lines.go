package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/convlog/convlog/event"
)

// Line describes a stored line. The suite renders lines by docs/FORMAT.md itself, to
// test stores without a log.
type Line struct {
	session  string
	seq      int64
	Typ      string    // test:note if empty
	ID       ulid.ULID // a new id if zero
	more     int
	Cut      string // SHA-256 of a torn tail of 41 bytes
	Members  string // metadata and unknown members, as on the line
	Data     string
	redacted bool // has commit and kept instead of content
}

// BatchAfter returns one append of n events after a head.
func BatchAfter(session string, after event.Head, n int) []event.Event {
	lines := make([]Line, n)
	for i := range lines {
		lines[i] = Line{Data: fmt.Sprintf(`{"n":%d}`, i)}
	}
	return ChainAfter(session, after, lines...)
}

// ChainAfter returns one append of lines after a head.
func ChainAfter(session string, after event.Head, lines ...Line) []event.Event {
	events := make([]event.Event, len(lines))
	for i, l := range lines {
		l.session, l.seq, l.more = session, after.Seq+1, len(lines)-1-i
		events[i] = l.finish(after.Hash)
		after = events[i].Head()
	}
	return events
}

// HeadOf returns the head of the last event.
func HeadOf(events []event.Event) event.Head { return events[len(events)-1].Head() }

// finish renders the line, chained to prev, and parses it.
func (l Line) finish(prev event.Hash) event.Event {
	if l.ID == (ulid.ULID{}) {
		l.ID = event.NewID()
	}
	salt := sha256.Sum256([]byte(l.ID.String()))
	header := l.header()
	commit := hashParts(salt[:16], hashText(l.Members), hashText(l.Data))
	link := hashParts(prev[:], hashText(header), commit)
	body := header
	if !l.redacted {
		body += `,"salt":"` + hex.EncodeToString(salt[:16]) + `"`
	}
	body += `,"hash":"` + hex.EncodeToString(link) + `"`
	switch {
	case l.redacted:
		body += `,"commit":"` + hex.EncodeToString(commit) + `","kept":{}`
	case l.Members != "":
		body += "," + l.Members + `,"data":` + l.Data
	default:
		body += `,"data":` + l.Data
	}
	return MustParse(withCRC(body+"}"), l.session)
}

func (l Line) header() string {
	typ := l.Typ
	if typ == "" {
		typ = "test:note"
	}
	at := time.Unix(1_800_000_000+l.seq, 0).UTC().Format("2006-01-02T15:04:05.000000000Z")
	header := fmt.Sprintf(`"v":1,"seq":%d,"id":"%s","session_id":%s,"type":%s,"timestamp":"%s"`,
		l.seq, l.ID, Quote(l.session), Quote(typ), at)
	if l.more > 0 {
		header += `,"more":` + strconv.Itoa(l.more)
	}
	if l.Cut != "" {
		header += `,"cut":{"bytes":41,"sha256":"` + l.Cut + `"}`
	}
	return header
}

// RedactedLine returns e as a redacted line with the same header, hash and commit.
func RedactedLine(e event.Event) event.Event {
	text := string(e.Line())
	at := bytes.Index(e.Line(), []byte(`,"salt":"`))
	salt, err := hex.DecodeString(text[at+9 : at+9+32])
	if err != nil {
		panic(err)
	}
	meta := ""
	if len(e.Metadata) > 0 {
		meta = `"metadata":` + string(e.Metadata)
	}
	commit := hashParts(salt, hashText(meta), hashText(string(e.Data)))
	body := text[18:at] + `,"hash":"` + e.Hash().String() + `","commit":"` + hex.EncodeToString(commit) + `","kept":{}}`
	return MustParse(withCRC(body), e.SessionID)
}

// WithData returns e with other data and a matching crc. The hash does not match.
func WithData(e event.Event, data string) event.Event {
	body := bytes.TrimSuffix(e.Line()[18:], append(bytes.Clone(e.Data), '}'))
	return MustParse(withCRC(string(body)+data+"}"), e.SessionID)
}

// withCRC adds the crc to the start of a line's body.
func withCRC(body string) string {
	crc := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	return fmt.Sprintf(`{"crc":"%08x",%s`, crc, body)
}

// MustParse parses a line that the suite rendered.
func MustParse(text, session string) event.Event {
	e, err := event.Parse([]byte(text), session)
	if err != nil {
		panic(fmt.Sprintf("the suite rendered an invalid line: %v\n%s", err, text))
	}
	return e
}

// Quote returns text as a JSON string. It only escapes quotes and backslashes.
func Quote(text string) string {
	var b bytes.Buffer
	b.WriteByte('"')
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	b.WriteByte('"')
	return b.String()
}

func hashParts(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

func hashText(text string) []byte { return hashParts([]byte(text)) }

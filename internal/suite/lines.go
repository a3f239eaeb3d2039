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

// line is what a finished line is made of. The suite renders lines itself,
// from docs/FORMAT.md, for the promises of the store underneath.
type Line struct {
	session  string
	seq      int64
	Typ      string    // test:note if empty
	ID       ulid.ULID // a new one if zero
	more     int
	Cut      string // SHA-256 of a torn tail of 41 bytes
	Members  string // metadata and unknown members, as on the line
	Data     string
	redacted bool // commit and kept stand in the place of all content
}

// batchAfter makes one append of n finished events behind after.
func BatchAfter(session string, after event.Head, n int) []event.Event {
	lines := make([]Line, n)
	for i := range lines {
		lines[i] = Line{Data: fmt.Sprintf(`{"n":%d}`, i)}
	}
	return ChainAfter(session, after, lines...)
}

// chainAfter makes one append of lines behind after.
func ChainAfter(session string, after event.Head, lines ...Line) []event.Event {
	events := make([]event.Event, len(lines))
	for i, l := range lines {
		l.session, l.seq, l.more = session, after.Seq+1, len(lines)-1-i
		events[i] = l.finish(after.Hash)
		after = events[i].Head()
	}
	return events
}

// headOf is the head behind events.
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

// erased is a redacted line in the place of e: same header, hash and commit.
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

// tampered is e with its data replaced and its crc made right again.
func WithData(e event.Event, data string) event.Event {
	body := bytes.TrimSuffix(e.Line()[18:], append(bytes.Clone(e.Data), '}'))
	return MustParse(withCRC(string(body)+data+"}"), e.SessionID)
}

// sealed puts the crc before a line's body.
func withCRC(body string) string {
	crc := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
	return fmt.Sprintf(`{"crc":"%08x",%s`, crc, body)
}

// parsed reads a line that the suite made itself.
func MustParse(text, session string) event.Event {
	e, err := event.Parse([]byte(text), session)
	if err != nil {
		panic(fmt.Sprintf("the suite made a bad line: %v\n%s", err, text))
	}
	return e
}

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

package mcplog

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// cursor is the place at which the next answer begins.
type cursor struct {
	query uint64 // the digest of the tool and its arguments
	row   uint64 // the digest of the row's identity
	// number is how many rows come before the row, and seq its member seq.
	number, seq uint64
	// byte is where the next part of the row begins, and whole the digest of the row in parts.
	byte, whole uint64
}

// fields are the numbers of a cursor, in the order of its text.
func (c *cursor) fields() []*uint64 {
	return []*uint64{&c.query, &c.row, &c.number, &c.seq, &c.byte, &c.whole}
}

func (c *cursor) String() string {
	var words []string
	for _, field := range c.fields() {
		words = append(words, strconv.FormatUint(*field, 36))
	}
	return strings.Join(words, ".")
}

// parse sets the fields from the text of a cursor.
func (c *cursor) parse(text string) error {
	words, fields := strings.Split(text, "."), c.fields()
	if len(words) != len(fields) {
		return errForeign
	}
	for i, word := range words {
		n, err := strconv.ParseUint(word, 36, 63)
		if err != nil {
			return errForeign
		}
		*fields[i] = n
	}
	return nil
}

var (
	errForeign = errors.New("the cursor is not of this call: give next of the answer before, with the same tool and parameters")
	errChanged = errors.New("the row of the cursor has changed or is missing: begin again without cursor")
)

// parseCursor parses the cursor of a call; nil without one.
func (t *Tool) parseCursor(args Args) (*cursor, error) {
	text := args.one(cursorParam)
	if text == "" {
		return nil, nil
	}
	c := &cursor{}
	if err := c.parse(text); err != nil {
		return nil, err
	}
	if c.query != t.query(args) {
		return nil, errForeign
	}
	return c, nil
}

// query is the digest of a tool and the arguments that select rows.
func (t *Tool) query(args Args) uint64 {
	parts := []string{t.Name}
	for _, p := range t.params() {
		if p.Name != cursorParam && p.Name != budgetParam && len(args[p.Name]) > 0 {
			parts = append(parts, p.Name)
			parts = append(parts, args[p.Name]...)
		}
	}
	return digest(parts...)
}

// digest is a short digest: a cursor is a part of every answer.
func digest(parts ...string) uint64 {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d %s", len(part), part)
	}
	return binary.BigEndian.Uint64(h.Sum(nil)) >> 16
}

// at is the cursor of a row.
func (t *Tool) at(args Args, row []byte, number uint64) (*cursor, error) {
	c := &cursor{query: t.query(args), number: number}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(row, &members, form()...); err != nil {
		return nil, fmt.Errorf("read a row: %w", err)
	}
	identity := []string{string(row)}
	if len(t.Key) > 0 {
		identity = nil
		for _, name := range t.Key {
			identity = append(identity, string(members[name]))
		}
	}
	c.row = digest(identity...)
	if t.Begin != "" {
		if err := json.Unmarshal(members["seq"], &c.seq); err != nil {
			return nil, fmt.Errorf("read the seq of a row: %w", err)
		}
	}
	return c, nil
}

// limitParam is the parameter that chooses the newest rows.
const limitParam = "limit"

// begin makes the command begin at the row of a cursor, if it can. A limit has chosen the first
// row already.
func (t *Tool) begin(args Args, c *cursor) Args {
	if t.Begin == "" || c == nil {
		return args
	}
	next := maps.Clone(args)
	delete(next, limitParam)
	next[t.Begin] = []string{fmt.Sprint(c.seq)}
	return next
}

// is reports whether a row that was read is the row of the cursor.
func (c *cursor) is(t *Tool, row *cursor) bool {
	return row.row == c.row && (len(t.Key) > 0 || row.number == c.number)
}

// passed is the error of a row before which the row of the cursor came; nil if rows move.
func (c *cursor) passed(t *Tool) error {
	if len(t.Key) == 0 {
		return errChanged
	}
	return nil
}

// byteOf is where the next part of the row begins.
func (c *cursor) byteOf(row []byte) (int, error) {
	if c.byte > 0 && (c.whole != digest(string(row)) || c.byte >= uint64(len(row)) || !utf8.RuneStart(row[c.byte])) {
		return 0, errChanged
	}
	return int(c.byte), nil
}

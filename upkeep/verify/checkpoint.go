package verify

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

// Checkpoint has the heads of all sessions of a store at one time. Kept outside the store, it
// shows later whether the store has lost its end, a session, or a change of one: the heads go
// into Options.Heads.
type Checkpoint struct {
	// Store is the id of the store, empty if it has none.
	Store string
	Heads map[string]event.Head // by session
}

// Heads reads the heads of all sessions. A session that cannot be read is an error, which has
// its name. Sessions that grow meanwhile have a head that they had since the call.
func Heads(ctx context.Context, log *eventlog.Log) (Checkpoint, error) {
	store, err := log.StoreID(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	c := Checkpoint{Store: store, Heads: map[string]event.Head{}}
	for info, err := range log.Sessions(ctx) {
		if err == nil {
			err = info.Err
		}
		if err != nil {
			return Checkpoint{}, fmt.Errorf("read the head of session %q: %w", info.ID, err)
		}
		c.Heads[info.ID] = info.Last.Head()
	}
	return c, ctx.Err()
}

// origin begins the first line of a checkpoint.
const origin = "convlog/heads/"

// leaf is the line of a session.
func leaf(session string, h event.Head) string {
	return strconv.FormatInt(h.Seq, 10) + " " + h.Hash.String() + " " + session
}

// Root is the hash of a Merkle tree (RFC 6962) over the lines of the sessions, in the order of
// their ids.
func (c Checkpoint) Root() event.Hash {
	var hashes memoryHashes
	for i, session := range slices.Sorted(maps.Keys(c.Heads)) {
		more, _ := tlog.StoredHashes(int64(i), []byte(leaf(session, c.Heads[session])), hashes) // memory has no errors
		hashes = append(hashes, more...)
	}
	root, _ := tlog.TreeHash(int64(len(c.Heads)), hashes)
	return event.Hash(root)
}

type memoryHashes []tlog.Hash

func (m memoryHashes) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, n := range indexes {
		out[i] = m[n]
	}
	return out, nil
}

// MarshalText is a checkpoint of C2SP (tlog-checkpoint: the origin, the number of sessions, and
// the root in base64, each in a line of its own), an empty line, and a line for each session: seq,
// hash and id. The checkpoint without the empty line can be signed; its signatures go after the
// empty line, with another one after them.
func (c Checkpoint) MarshalText() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n%d\n%s\n\n", origin, c.Store, len(c.Heads), tlog.Hash(c.Root()))
	for _, session := range slices.Sorted(maps.Keys(c.Heads)) {
		b.WriteString(leaf(session, c.Heads[session]))
		b.WriteByte('\n')
	}
	return b.Bytes(), nil
}

// UnmarshalText reads a checkpoint, and compares its root with its lines. It skips signatures.
func (c *Checkpoint) UnmarshalText(text []byte) error {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	bad := func(n int, why string) error {
		return fmt.Errorf("line %d of the checkpoint %s: take a new one, or use an unchanged copy", n+1, why)
	}
	if len(lines) < 4 || !strings.HasPrefix(lines[0], origin) || lines[3] != "" {
		return bad(0, "is not "+origin+"STORE, the number of sessions, the root and an empty line")
	}
	size, err := strconv.Atoi(lines[1])
	if err != nil || size < 0 {
		return bad(1, "is no number of sessions")
	}
	n := 4
	for n < len(lines) && strings.HasPrefix(lines[n], "— ") {
		n++
	}
	if n > 4 && n < len(lines) && lines[n] == "" {
		n++
	}
	got := Checkpoint{Store: strings.TrimPrefix(lines[0], origin), Heads: make(map[string]event.Head, min(size, len(lines)))}
	last := ""
	for ; n < len(lines); n++ {
		session, head, ok := parseLeaf(lines[n])
		if !ok {
			return bad(n, "is not SEQ HASH SESSION")
		}
		if session <= last {
			return bad(n, "is not in the order of sessions")
		}
		last, got.Heads[session] = session, head
	}
	if len(got.Heads) != size {
		return bad(1, fmt.Sprintf("says %d sessions, and %d follow", size, len(got.Heads)))
	}
	if root := tlog.Hash(got.Root()).String(); root != lines[2] {
		return bad(2, "is not the root of the sessions below, whose root is "+root)
	}
	*c = got
	return nil
}

func parseLeaf(text string) (session string, h event.Head, ok bool) {
	parts := strings.SplitN(text, " ", 3)
	if len(parts) != 3 || event.CheckSessionID(parts[2]) != nil || h.Hash.UnmarshalText([]byte(parts[1])) != nil {
		return "", h, false
	}
	seq, err := strconv.ParseInt(parts[0], 10, 64)
	h.Seq = seq
	return parts[2], h, err == nil && seq > 0 && leaf(parts[2], h) == text
}

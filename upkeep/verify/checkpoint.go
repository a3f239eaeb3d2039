package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
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

// leaf appends the line of a session to b.
func leaf(b []byte, session string, h event.Head) []byte {
	b = append(strconv.AppendInt(b, h.Seq, 10), ' ')
	b = append(hex.AppendEncode(b, h.Hash[:]), ' ')
	return append(b, session...)
}

// sessions returns the ids of the sessions, in their order.
func (c Checkpoint) sessions() []string {
	ids := slices.AppendSeq(make([]string, 0, len(c.Heads)), maps.Keys(c.Heads))
	slices.Sort(ids)
	return ids
}

// Root is the hash of a Merkle tree (RFC 6962) over the lines of the sessions, in the order of
// their ids.
func (c Checkpoint) Root() event.Hash { return root(c.sessions(), c.Heads) }

// root keeps the hash of each complete subtree: few are in memory at a time.
func root(sessions []string, heads map[string]event.Head) event.Hash {
	var subtrees []tlog.Hash // the largest first: one for each bit of the number of leaves
	var line []byte
	for i, session := range sessions {
		line = leaf(line[:0], session, heads[session])
		subtrees = append(subtrees, tlog.RecordHash(line))
		for n := i + 1; n%2 == 0; n /= 2 {
			subtrees = joinLast(subtrees)
		}
	}
	if len(subtrees) == 0 {
		return sha256.Sum256(nil)
	}
	for len(subtrees) > 1 {
		subtrees = joinLast(subtrees)
	}
	return event.Hash(subtrees[0])
}

// joinLast replaces the last two subtrees by their parent.
func joinLast(subtrees []tlog.Hash) []tlog.Hash {
	n := len(subtrees)
	return append(subtrees[:n-2], tlog.NodeHash(subtrees[n-2], subtrees[n-1]))
}

// Lines yields the lines of the text of a checkpoint: a checkpoint of C2SP (tlog-checkpoint: the
// origin, the number of sessions, and the root in base64), an empty line, and a line for each
// session: seq, hash and id. The first three lines can be signed; the signatures go after the
// empty line, with another empty line after them.
func (c Checkpoint) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		sessions := c.sessions()
		for _, line := range []string{origin + c.Store, strconv.Itoa(len(sessions)), tlog.Hash(root(sessions, c.Heads)).String(), ""} {
			if !yield(line) {
				return
			}
		}
		for _, session := range sessions {
			if !yield(string(leaf(nil, session, c.Heads[session]))) {
				return
			}
		}
	}
}

// UnmarshalText reads the lines of a checkpoint, and compares its root with its lines. It skips signatures.
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
	return parts[2], h, err == nil && seq > 0 && string(leaf(nil, parts[2], h)) == text
}

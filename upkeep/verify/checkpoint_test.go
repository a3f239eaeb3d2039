package verify_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/memory"
	"github.com/convlog/convlog/upkeep/erase"
	"github.com/convlog/convlog/upkeep/verify"
)

func say(t *testing.T, log *eventlog.Log, session string, n int) {
	t.Helper()
	for range n {
		if _, err := log.Append(t.Context(), session, eventlog.Any(), event.New(event.Message{Role: event.User, Parts: []event.Part{event.Text("hello")}})); err != nil {
			t.Fatal(err)
		}
	}
}

func heads(t *testing.T, log *eventlog.Log) (verify.Checkpoint, string) {
	t.Helper()
	c, err := verify.Heads(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	return c, text(c)
}

func text(c verify.Checkpoint) string {
	return strings.Join(slices.Collect(c.Lines()), "\n") + "\n"
}

// The root is that of RFC 6962: an empty tree has the hash of nothing, a tree of one leaf the
// hash of a zero byte and the leaf.
func TestRootOfACheckpoint(t *testing.T) {
	t.Parallel()
	if got := (verify.Checkpoint{}).Root().String(); got != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("the root of nothing is %s", got)
	}
	one := verify.Checkpoint{Heads: map[string]event.Head{"a": {Seq: 7}}}
	leaf := "7 " + strings.Repeat("0", 64) + " a"
	if got, want := one.Root(), event.Hash(sha256.Sum256([]byte("\x00"+leaf))); got != want {
		t.Errorf("the root of one leaf is %s, want %s", got, want)
	}
	c := verify.Checkpoint{Heads: map[string]event.Head{}}
	var hashes storedHashes
	for n := range int64(70) {
		session := fmt.Sprintf("%02d", n)
		c.Heads[session] = event.Head{Seq: n + 1}
		more, _ := tlog.StoredHashes(n, []byte(fmt.Sprintf("%d %s %s", n+1, strings.Repeat("0", 64), session)), hashes)
		hashes = append(hashes, more...)
		if want, _ := tlog.TreeHash(n+1, hashes); event.Hash(want) != c.Root() {
			t.Errorf("the root of %d leaves is %s, want %s", n+1, c.Root(), want)
		}
	}
}

// storedHashes has no errors.
type storedHashes []tlog.Hash

func (s storedHashes) ReadHashes(indexes []int64) (out []tlog.Hash, _ error) {
	for _, n := range indexes {
		out = append(out, s[n])
	}
	return out, nil
}

// A checkpoint is read as it was written, and a changed one is refused.
func TestCheckpointText(t *testing.T) {
	t.Parallel()
	log := eventlog.Open(memory.New())
	for _, id := range []string{"a", " b ", "— c", "Größe 日本", "z"} {
		say(t, log, id, 2)
	}
	want, whole := heads(t, log)
	for _, in := range []string{whole, strings.TrimSuffix(whole, "\n"), strings.Replace(whole, "\n\n", "\n\n— x AAAA\n— y AAAA\n\n", 1)} {
		var got verify.Checkpoint
		if err := got.UnmarshalText([]byte(in)); err != nil || got.Root() != want.Root() || got.Store != want.Store || len(got.Heads) != 5 {
			t.Errorf("%v\n%s", err, in)
		}
	}
	var empty verify.Checkpoint
	if err := empty.UnmarshalText([]byte(text(empty))); err != nil {
		t.Error(err)
	}
	lines := strings.SplitAfter(whole, "\n")
	for i := range lines {
		for name, changed := range map[string][]string{
			"without": append(append([]string{}, lines[:i]...), lines[i+1:]...),
			"twice":   append(append([]string{}, lines[:i+1]...), lines[i:]...),
			"longer":  append(append(append([]string{}, lines[:i]...), "1"+lines[i]), lines[i+1:]...),
		} {
			in := strings.Join(changed, "")
			if i == len(lines)-1 && name != "longer" || i == 0 && name == "longer" || in == whole {
				continue // nothing changes
			}
			if err := new(verify.Checkpoint).UnmarshalText([]byte(in)); err == nil {
				t.Errorf("line %d %s is accepted:\n%s", i+1, name, in)
			}
		}
	}
}

// A session that is missing is damage, and a session that was removed on purpose is not.
func TestHeadsOfMissingSessions(t *testing.T) {
	t.Parallel()
	log := eventlog.Open(memory.New())
	say(t, log, "removed", 1)
	say(t, log, "stays", 1)
	c, _ := heads(t, log)
	c.Heads["lost"] = event.Head{Seq: 3}
	say(t, log, "stays", 1)
	if err := erase.Remove(t.Context(), log, "removed"); err != nil {
		t.Fatal(err)
	}
	known := map[string][]event.Head{}
	for id, h := range c.Heads {
		known[id] = []event.Head{h}
	}
	v := verify.New(log, verify.Options{Heads: known})
	for id, want := range map[string][2]int{"lost": {1, 0}, "removed": {0, 1}, "stays": {0, 0}} {
		r, err := v.Session(t.Context(), id)
		if err != nil || len(r.Defects) != want[0] || len(r.Notes) != want[1] || r.Session != id {
			t.Errorf("%s: %v %+v", id, err, r)
		}
	}
	if _, err := v.Session(t.Context(), "unknown"); err == nil {
		t.Error("an unknown session is verified")
	}
}

package lists

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop"
	"github.com/convlog/convlog/interop/internal/document"
)

// file is the file that is being imported.
type file struct {
	document.File
	count int // of its conversations so far
}

func newFile(src interop.Source) file { return file{File: document.NewFile(src)} }

// plainName keeps what is pleasant in an id.
func plainName(s string) string { return cmp.Or(document.Name(s), "list") }

// ownIDLength is how long an id must be to be nobody else's.
const ownIDLength = 12

// ownID reports whether a conversation has an id that names its session.
func (c *conversation) ownID() bool {
	return len(c.id) >= ownIDLength && event.CheckSessionID(c.id) == nil
}

// session is the id of the session that a conversation becomes where its own does
// not name it.
func (f *file) session(c *conversation) string {
	name := strconv.Itoa(c.number)
	if c.id != "" {
		name = plainName(c.id)
	}
	sum := sha256.Sum256([]byte(f.Path + "\x00" + name + "\x00" + c.id))
	return plainName(f.Stem) + "-" + name + "-" + hex.EncodeToString(sum[:4])
}

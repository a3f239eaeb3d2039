package lists

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/interop"
)

// file is the file that is being imported.
type file struct {
	path  string // absolute
	stem  string // begins the ids of its conversations
	at    time.Time
	count int // of its conversations so far
}

// newFile looks at the file. What is no file, such as standard input, has no
// time and is known by its name.
func newFile(src interop.Source) file {
	f := file{path: src.Name}
	if info, err := os.Stat(src.Name); err == nil {
		f.at = info.ModTime().UTC().Truncate(time.Second)
		if path, err := filepath.Abs(src.Name); err == nil {
			f.path = path
		}
	}
	base := filepath.Base(src.Name)
	f.stem = plainName(strings.TrimSuffix(base, filepath.Ext(base)))
	return f
}

// plainName keeps what is pleasant in an id.
func plainName(s string) string {
	const most = 40
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '.':
			return r
		}
		return '-'
	}, s)
	if name = strings.Trim(name[:min(len(name), most)], "-."); name == "" {
		return "list"
	}
	return name
}

// ownIDLength is how long an id must be to be nobody else's.
const ownIDLength = 12

// ownID reports whether a conversation has an id that names its session.
func (c *conversation) ownID() bool {
	return len(c.id) >= ownIDLength && eventlog.CheckSessionID(c.id) == nil
}

// session is the id of the session that a conversation becomes where its own does
// not name it.
func (f *file) session(c *conversation) string {
	name := strconv.Itoa(c.number)
	if c.id != "" {
		name = plainName(c.id)
	}
	sum := sha256.Sum256([]byte(f.path + "\x00" + name + "\x00" + c.id))
	return f.stem + "-" + name + "-" + hex.EncodeToString(sum[:4])
}

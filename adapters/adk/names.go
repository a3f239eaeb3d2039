package adk

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
)

// The ids of the sessions in the log begin with these texts.
const (
	sessionPrefix = "adk/"     // adk/APP/USER/SESSION
	appPrefix     = "adk:app/" // the state of an app: adk:app/APP
	userPrefix    = "adk:user/"
)

// member is the name under which this package stores its own data: in extra and metadata, and as the
// name of the custom state.
const member = "adk"

// identity names an ADK session. User and Session are empty for the state of an app, Session for the state of a user.
type identity struct {
	App     string `json:"app"`
	User    string `json:"user,omitempty"`
	Session string `json:"session,omitempty"`
}

func (i identity) logID() string { return sessionPrefix + joined(i.App, i.User, i.Session) }
func (i identity) appID() string { return appPrefix + joined(i.App) }
func (i identity) userID() string {
	return userPrefix + joined(i.App, i.User)
}

// listed is the prefix of the ids of all sessions of the user, or of the app if User is empty.
func (i identity) listed() string {
	if i.User == "" {
		return sessionPrefix + joined(i.App) + "/"
	}
	return sessionPrefix + joined(i.App, i.User) + "/"
}

// owns reports whether a session belongs to the user, or to the app if i has no user.
func (i identity) owns(of identity) bool {
	return i.App == of.App && (i.User == "" || i.User == of.User)
}

// metadata is the metadata of the first event of a session.
func (i identity) metadata() jsontext.Value {
	raw, _ := json.Marshal(map[string]identity{member: i}) // three strings
	return raw
}

// identityOf returns the identity of a session. The metadata of its first event has the names that are too long for
// the id.
func identityOf(first *event.Event) (i identity, ok bool) {
	if i, ok = parseID(first.SessionID); ok {
		return i, true
	}
	raw, ok := first.MetadataValue(member)
	return i, ok && json.Unmarshal(raw, &i) == nil && i.Session != ""
}

// parseID parses the id of a session. It fails if a name is shortened.
func parseID(id string) (identity, bool) {
	rest, ok := strings.CutPrefix(id, sessionPrefix)
	names := strings.Split(rest, "/")
	if !ok || len(names) != 3 {
		return identity{}, false
	}
	for n, name := range names {
		if names[n], ok = unescape(name); !ok {
			return identity{}, false
		}
	}
	return identity{names[0], names[1], names[2]}, true
}

func joined(names ...string) string {
	for n, name := range names {
		names[n] = escape(name)
	}
	return strings.Join(names, "/")
}

// maxName is the length of an escaped name: three names and a prefix fit into the 200 bytes of an id.
const maxName = 60

// escape returns a name without slashes and control characters. A long name is its beginning, "~" and a hash
// of the name.
func escape(name string) string {
	var b strings.Builder
	for n := 0; n < len(name); {
		r, size := utf8.DecodeRuneInString(name[n:])
		if r == utf8.RuneError && size <= 1 || unicode.IsControl(r) || strings.ContainsRune("/%~", r) {
			for _, c := range []byte(name[n : n+size]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(name[n : n+size])
		}
		n += size
	}
	if b.Len() <= maxName {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	hash := "~" + hex.EncodeToString(sum[:16])
	return strings.ToValidUTF8(b.String()[:maxName-len(hash)], "") + hash
}

// unescape fails for a name that escape shortened.
func unescape(name string) (string, bool) {
	plain, err := url.PathUnescape(name)
	return plain, err == nil && !strings.Contains(name, "~")
}

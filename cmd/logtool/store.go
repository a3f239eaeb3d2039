package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/convlog/convlog/cmd/logtool/internal/term"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/postgres"
)

// place is the location of a store.
type place struct {
	kind string
	path string // of a server: its URL
	// name is the URL without passwords.
	name string
	// wait is how long to wait for a lock that another process holds; 0 is no limit.
	wait time.Duration
	// unnamed says that this is the default place: no flag and no variable names it.
	unnamed bool
	// mask says that secrets are shown as masks.
	mask bool
	// screen screens appends for secrets; nil does not.
	screen *screening
	// progress shows the progress of the command; nil shows none.
	progress *term.Progress
}

const (
	kindJSONL     = "jsonl"
	kindSQLite    = "sqlite"
	kindPostgres  = "postgres"
	kindJetStream = "nats"
)

// serverKinds are the kinds of stores on servers, by the scheme of their URLs.
var serverKinds = map[string]string{
	"postgres": kindPostgres, "postgresql": kindPostgres,
	"nats": kindJetStream, "tls": kindJetStream, "ws": kindJetStream, "wss": kindJetStream,
}

// publicURL returns a URL without passwords, by its kind.
var publicURL = map[string]func(text string) (string, error){
	kindPostgres: postgres.Public, kindJetStream: jetstream.Public,
}

// serverKind is the kind of a URL of a server; "" for any other text.
func serverKind(text string) string {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok {
		return ""
	}
	return serverKinds[scheme]
}

// onServer reports whether the store is on a server.
func (at place) onServer() bool { return at.kind == kindPostgres || at.kind == kindJetStream }

// shown is the value of --store without passwords.
func shown(text string) string {
	kind := serverKind(text)
	if kind == "" {
		return text
	}
	name, err := publicURL[kind](text)
	if err != nil {
		return kind + "://…"
	}
	return name
}

// scheme is the start of a URL. A letter before a colon is a drive.
var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]+:`)

// connection is a word of a connection string of libpq.
var connection = regexp.MustCompile(`(?i)(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|sslmode)\s*=`)

// lengthOfSeed is the length of the seed of a NATS key.
const lengthOfSeed = 58

// checkPlace refuses a text that names no known store, and that is no path on purpose. The text may
// have a password, so no error shows it.
func checkPlace(text string, exists bool) error {
	name := strings.TrimSuffix(strings.ToLower(scheme.FindString(text)), ":")
	switch {
	case name == kindJSONL || name == kindSQLite:
		return nil
	case strings.Trim(text, " \t\r\n\"'`") != text:
		return refusedPlace("begins or ends with a quote or a blank")
	case serverKind(text) != "":
		return nil
	case connection.MatchString(text):
		return refusedPlace("is a connection string")
	case serverKinds[name] != "":
		return refusedPlace("has the scheme " + name + " without two slashes")
	case strings.Contains(text, "://") || strings.Contains(strings.ToLower(text), "%3a"):
		return refusedPlace("is a URL of another program, or has its special characters as %XX")
	case len(text) == lengthOfSeed && strings.HasPrefix(text, "S") && strings.ToUpper(text) == text:
		return refusedPlace("is the seed of a key")
	case name != "" && !exists:
		return refusedPlace("has the scheme " + name)
	}
	return nil
}

func knownScheme(name string) bool {
	return name == kindJSONL || name == kindSQLite || serverKinds[name] != ""
}

func refusedPlace(why string) error {
	return usagef("the store (not shown: it may have a password) %s: give DIR, FILE.db, postgres://… or nats://…, or jsonl:DIR for a folder of this name", why)
}

// parsePlace reads the value of --store. A prefix decides the kind, in small or capital letters.
// Without a prefix, the file or folder at the path decides, then the ending of its name.
func parsePlace(text string, isFile, isDir func(path string) bool) (place, error) {
	if name, rest, ok := strings.Cut(text, ":"); ok && knownScheme(strings.ToLower(name)) {
		text = strings.ToLower(name) + ":" + rest
	}
	if err := checkPlace(text, isFile(text) || isDir(text)); err != nil {
		return place{}, err
	}
	if kind := serverKind(text); kind != "" {
		name, err := publicURL[kind](text)
		if err != nil {
			return place{}, usagef("%v", err)
		}
		return place{kind: kind, path: text, name: name}, nil
	}
	kind, path, prefixed := strings.Cut(text, ":")
	switch {
	case prefixed && (kind == kindJSONL || kind == kindSQLite):
	case !isDir(text) && (isFile(text) || databaseName(text)):
		kind, path = kindSQLite, text
	default:
		kind, path = kindJSONL, text
	}
	if path == "" {
		return place{}, usagef("no store in %q: give --store DIR, FILE.db, jsonl:DIR, sqlite:FILE, postgres://… or nats://…", text)
	}
	return place{kind: kind, path: path}, nil
}

func databaseName(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".db", ".sqlite", ".sqlite3":
		return true
	}
	return false
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// placeNamed is the store that a command's argument names.
func (a *app) placeNamed(text string) (place, error) {
	at, err := parsePlace(text, isFile, isDir)
	at.wait, at.progress = a.wait, a.progress
	return at, err
}

// home is the home folder of the user. Windows has it in USERPROFILE.
func (a *app) home() string { return cmp.Or(a.getenv("HOME"), a.getenv("USERPROFILE")) }

// place is the store that --store names, else the environment.
func (a *app) place() (place, error) {
	text := a.store
	if text == "" {
		text = a.getenv("CONVLOG_STORE")
	}
	if text != "" {
		return a.placeNamed(text)
	}
	data := a.getenv("XDG_DATA_HOME")
	if data == "" {
		home := a.home()
		if home == "" {
			return place{}, usagef("no store: give --store or set CONVLOG_STORE")
		}
		data = filepath.Join(home, ".local", "share")
	}
	return place{kind: kindJSONL, path: filepath.Join(data, "convlog"), wait: a.wait, progress: a.progress, unnamed: true}, nil
}

// String has no passwords.
func (at place) String() string {
	if at.onServer() {
		return at.name
	}
	return at.kind + ":" + at.path
}

// same reports whether two places have the same path, or the same log of a server.
func (at place) same(other place) bool {
	if at.onServer() {
		return at.name == other.name
	}
	return filepath.Clean(at.path) == filepath.Clean(other.path)
}

// mode says how a store is opened.
type mode int

const (
	forReading  mode = iota // creates and changes nothing
	forWriting              // creates a missing store
	forChanging             // changes an existing store
	forRows                 // puts rows into the catalog of an existing store
)

// open opens the log at a place.
func (at place) open(m mode) (*eventlog.Log, error) {
	if m != forWriting {
		if err := at.exists(); err != nil {
			return nil, err
		}
	}
	store, err := at.openStore(m)
	if err != nil {
		return nil, err
	}
	return eventlog.Open(store, at.screen.options()), nil
}

// exists returns an error that explains why there is no store to read. The first
// request asks a server.
func (at place) exists() error {
	if at.onServer() {
		return nil
	}
	info, err := os.Stat(at.path)
	switch {
	case os.IsNotExist(err) && at.unnamed:
		return fmt.Errorf("there is no log at %s yet: `logtool import` lists transcripts to import, or name a store with --store", at.path)
	case os.IsNotExist(err):
		name := at.path
		if at.kind == kindSQLite && !databaseName(name) {
			name = at.String()
		}
		return fmt.Errorf("no store at %s: make one with `logtool --store %s import`, or name another", at, shellWord(name))
	case err != nil:
		return fmt.Errorf("open %s: %w", at, err)
	case info.IsDir() && at.kind == kindSQLite:
		return fmt.Errorf("%s is a folder, not a sqlite file: use --store jsonl:%s", at.path, at.path)
	case !info.IsDir() && at.kind == kindJSONL:
		return fmt.Errorf("%s is a file, not a folder: use --store sqlite:%s", at.path, at.path)
	}
	return nil
}

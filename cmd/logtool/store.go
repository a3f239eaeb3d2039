package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/sqlite"
)

// place is where a store is.
type place struct {
	kind string // kindJSONL or kindSQLite
	path string
	// wait bounds how long a lock that another process holds is waited for; 0 is
	// no bound.
	wait time.Duration
	// unnamed: nobody named the store, it is where logs are by default.
	unnamed bool
}

const (
	kindJSONL  = "jsonl"
	kindSQLite = "sqlite"
)

// parsePlace reads what --store says. A prefix decides; without one, what
// exists at the path decides, then the ending of its name. isFile and isDir
// look at the file system.
func parsePlace(text string, isFile, isDir func(path string) bool) (place, error) {
	kind, path, prefixed := strings.Cut(text, ":")
	switch {
	case prefixed && (kind == kindJSONL || kind == kindSQLite):
	case isDir(text):
		kind, path = kindJSONL, text
	case isFile(text) || databaseName(text):
		kind, path = kindSQLite, text
	default:
		kind, path = kindJSONL, text
	}
	if path == "" {
		return place{}, usagef("no store in %q: give --store DIR, FILE.db, jsonl:DIR or sqlite:FILE", text)
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

// place is the store that --store, else the environment, names.
func (a *app) place() (place, error) {
	text := a.store
	if text == "" {
		text = a.getenv("CONVLOG_STORE")
	}
	if text != "" {
		at, err := parsePlace(text, isFile, isDir)
		at.wait = a.wait
		return at, err
	}
	data := a.getenv("XDG_DATA_HOME")
	if data == "" {
		home := a.getenv("HOME")
		if home == "" {
			return place{}, usagef("no store: give --store or set CONVLOG_STORE")
		}
		data = filepath.Join(home, ".local", "share")
	}
	return place{kind: kindJSONL, path: filepath.Join(data, "convlog"), wait: a.wait, unnamed: true}, nil
}

func (at place) String() string { return at.kind + ":" + at.path }

// mode is what a store is opened for.
type mode int

const (
	forReading  mode = iota // creates and changes nothing
	forWriting              // creates what is missing
	forChanging             // changes what is there
)

// open opens the log at a place.
func (at place) open(m mode) (*eventlog.Log, error) {
	if m != forWriting {
		if err := at.exists(); err != nil {
			return nil, err
		}
	}
	if at.kind == kindSQLite {
		return eventlog.Open(sqlite.New(at.path, sqlite.Options{ReadOnly: m == forReading, LockTimeout: at.wait})), nil
	}
	return eventlog.Open(jsonl.New(at.path, jsonl.Options{ReadOnly: m == forReading, LockTimeout: at.wait})), nil
}

// exists says clearly why there is nothing to read.
func (at place) exists() error {
	info, err := os.Stat(at.path)
	switch {
	case os.IsNotExist(err) && at.unnamed:
		return fmt.Errorf("there is no log at %s yet: `logtool import` shows what can be imported, or name a store with --store", at.path)
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

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/secrets"
)

// The parts of patterns of paths. A separator may be escaped, as in JSON within a text, or
// encoded, as in an address. The character before a path may be the end of the path before,
// so that \B is a begin too.
const (
	pathSeparator = `(?:\\*/|\\+|%2[fF]|%5[cC])`
	pathName      = "[^\\s/\\\\\"'<>|:;,()\\[\\]{}*?&=%$#!`]{1,64}"
	pathBegin     = `(?:^|file://|[^\pL\pN_.~/\\-]|\B)`
	pathEnd       = `(?:\.*(?:$|[^\pL\pN_.-]))`
	homeFolder    = `(?i:home|users|documents and settings)`
)

// homeRules find the home directories in the usual folders, and the home directory of this
// process.
func homeRules() []secrets.Rule {
	const drive = `(?:[A-Za-z]:|` + pathSeparator + `mnt` + pathSeparator + `[a-z]|` + pathSeparator + `(?:var|export|usr|net|private|data|[a-z]))?`
	rules := []secrets.Rule{
		{Name: "home", Mask: "~", Keywords: []string{"home", "users", "documents"},
			Pattern: pathBegin + `(` + drive + pathSeparator + homeFolder + pathSeparator + pathName + `)`},
		{Name: "home-root", Mask: "~", Keywords: []string{"root"}, Pattern: pathBegin + `(` + pathSeparator + `root)` + pathEnd},
		// Below an unusual folder, or in the name that Claude Code gives to the folder of a project.
		{Name: "home-user", Mask: "user", Keywords: []string{"home", "users", "documents"},
			Pattern: pathSeparator + homeFolder + pathSeparator + `(` + pathName + `)`},
		{Name: "home-encoded", Mask: "user", Keywords: []string{"home-", "users-"}, Pattern: `(?:^|[^\pL\pN_])-(?i:home|users)-([^\s/\\"'-]{1,64})`},
	}
	if home, err := os.UserHomeDir(); err == nil {
		rules = append(pathRules("home-own", home, "~", "home"), rules...)
	}
	return rules
}

var usualHome = regexp.MustCompile(`^` + `(?:[A-Za-z]:)?` + pathSeparator + `(?:` + homeFolder + pathSeparator + pathName + `|root)` + pathSeparator + `?$`)

// pathRules find a folder and the folders below it, and the folder in the name that Claude
// Code gives to a project: /src/shop is -src-shop there.
func pathRules(name, folder, mask, encodedMask string) []secrets.Rule {
	var segments []string
	for _, s := range strings.FieldsFunc(folder, func(c rune) bool { return c == '/' || c == '\\' }) {
		segments = append(segments, regexp.QuoteMeta(s))
	}
	keyword := keywordOf(folder)
	if len(segments) == 0 || keyword == "" {
		return nil
	}
	begin := ""
	if strings.HasPrefix(folder, "/") || strings.HasPrefix(folder, `\`) {
		begin = pathSeparator
	}
	reach := min(3*len(folder)+64, 4096)
	rules := []secrets.Rule{{Name: name, Mask: mask, Keywords: []string{keyword}, Reach: reach,
		Pattern: pathBegin + `(` + begin + strings.Join(segments, pathSeparator) + `)` + pathEnd}}
	encoded := strings.Map(func(c rune) rune {
		if c < utf8.RuneSelf && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			return c
		}
		return '-'
	}, folder)
	if len(segments) > 1 {
		rules = append(rules, secrets.Rule{Name: name + "-encoded", Mask: encodedMask, Keywords: []string{keyword}, Reach: reach,
			Pattern: `(?:^|[^\pL\pN_-])(` + regexp.QuoteMeta(encoded) + `)(?:$|[^\pL\pN_])`})
	}
	return rules
}

// keywordOf is the first run of ASCII letters and digits of a path, in lower case; / if it
// has none near its begin, and empty if it has neither.
func keywordOf(path string) string {
	begin := path[:min(len(path), 48)]
	if word := words.FindString(begin); word != "" {
		return strings.ToLower(word)
	}
	if strings.Contains(begin, "/") {
		return "/"
	}
	return ""
}

var words = regexp.MustCompile(`[A-Za-z0-9]+`)

// maskPaths returns a view of a log. It shows ~ for a home directory, and /path/N for the working
// directory of a session. N is the same in each export until a session with another working
// directory comes.
func maskPaths(ctx context.Context, log *eventlog.Log) (*eventlog.Log, error) {
	folders := map[string]bool{}
	shared := programs{}
	for info, err := range log.Sessions(ctx) {
		if err != nil {
			return nil, err
		}
		if folder := strings.TrimRight(newSessionRow(info, shared).began.CWD, `/\`); folder != "" && !usualHome.MatchString(folder) {
			folders[folder] = true
		}
	}
	scanner, err := pathScanner(slices.Sorted(maps.Keys(folders)))
	if err != nil {
		return nil, err
	}
	return eventlog.Open(secrets.View(log.Store(), scanner)), nil
}

// pathScanner finds working directories, and home directories.
func pathScanner(folders []string) (*secrets.Scanner, error) {
	var rules []secrets.Rule
	for i, folder := range folders {
		rules = append(rules, pathRules(fmt.Sprint("path-", i+1), folder, fmt.Sprint("/path/", i+1), fmt.Sprint("-path-", i+1))...)
	}
	// A folder comes before the folders above it, and before the home directory.
	slices.SortStableFunc(rules, func(a, b secrets.Rule) int { return len(b.Pattern) - len(a.Pattern) })
	return secrets.New(append(rules, homeRules()...)...)
}

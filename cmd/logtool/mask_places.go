package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/secrets"
)

// A separator of a path may be escaped, as in JSON within a text, or encoded, as in an address:
// / \/ \ \\ %2F %5C.

// separatorBefore returns where the separator that ends at an offset begins.
func separatorBefore(text []byte, at int) (start int, ok bool) {
	switch {
	case at > 0 && (text[at-1] == '/' || text[at-1] == '\\'):
		for at--; at > 0 && text[at-1] == '\\'; at-- {
		}
		return at, true
	case at >= 3 && isEncodedSeparator(text[at-3:at]):
		return at - 3, true
	}
	return 0, false
}

// separatorAfter returns the end of the separator that begins at an offset.
func separatorAfter(text []byte, at int) (end int, ok bool) {
	for end = at; end < len(text) && text[end] == '\\'; end++ {
	}
	switch {
	case end < len(text) && text[end] == '/':
		return end + 1, true
	case end > at:
		return end, true
	case len(text) >= at+3 && isEncodedSeparator(text[at:at+3]):
		return at + 3, true
	}
	return 0, false
}

func isEncodedSeparator(text []byte) bool {
	return bytes.EqualFold(text, []byte("%2f")) || bytes.EqualFold(text, []byte("%5c"))
}

// beginsPath reports whether a path can begin at an offset: not after a letter, a digit or an
// underscore.
func beginsPath(text []byte, at int) bool {
	return at == 0 || !isASCIIWord(text[at-1]) || afterEscape(text, at)
}

func isASCIIWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// afterEscape reports whether an escape ends at an offset, as in JSON within a text: \n or \u003c.
func afterEscape(text []byte, at int) bool {
	if at >= 2 && text[at-2] == '\\' && strings.IndexByte("bfnrt", text[at-1]) >= 0 {
		return true
	}
	return at >= 6 && text[at-6] == '\\' && text[at-5] == 'u' && !bytes.ContainsFunc(text[at-4:at], func(c rune) bool {
		return !strings.ContainsRune("0123456789abcdefABCDEF", c)
	})
}

// endsPath reports whether a path can end at an offset: dots may follow, as at the end of a
// sentence, and no other character of a name.
func endsPath(text []byte, at int) bool {
	for at < len(text) && text[at] == '.' {
		at++
	}
	r, _ := utf8.DecodeRune(text[at:])
	return at == len(text) || r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsNumber(r)
}

// nameEnd returns the end of the name of a file that begins at an offset, of at most 64
// characters.
func nameEnd(text []byte, at int) int {
	for range 64 {
		r, size := utf8.DecodeRune(text[at:])
		if size == 0 || unicode.IsSpace(r) || strings.ContainsRune("/\\\"'<>|:;,()[]{}*?&=%$#!`", r) {
			break
		}
		at += size
	}
	return at
}

var usualHome = regexp.MustCompile(`^(?:[A-Za-z]:)?[/\\](?:(?i:home|users|documents and settings)[/\\][^/\\]+|root)[/\\]?$`)

// belowHome reports whether a folder is below a home directory in a usual folder, or is one.
func belowHome(folder string) bool {
	for i, c := range folder + "/" {
		if (c == '/' || c == '\\') && usualHome.MatchString(folder[:i]) {
			return true
		}
	}
	return false
}

// folderRules find a folder and the folders below it, and the folder in the name that Claude
// Code gives to a project: /src/shop is -src-shop there.
func folderRules(name, folder, mask, encodedMask string) (rules []secrets.Rule) {
	segments := strings.FieldsFunc(folder, func(c rune) bool { return c == '/' || c == '\\' })
	if len(segments) == 0 {
		return nil
	}
	last := segments[len(segments)-1]
	keyword, offset := keywordOf(last)
	rooted := strings.HasPrefix(folder, "/") || strings.HasPrefix(folder, `\`)
	rules = append(rules, secrets.Rule{Name: name, Mask: mask, Keywords: []string{keyword}, Match: func(text []byte, at int) (int, int) {
		start := at - offset
		end := start + len(last)
		if start < 0 || end > len(text) || string(text[start:end]) != last || !endsPath(text, end) {
			return 0, 0
		}
		for _, s := range slices.Backward(segments[:len(segments)-1]) {
			before, ok := separatorBefore(text, start)
			if start = before - len(s); !ok || start < 0 || string(text[start:before]) != s {
				return 0, 0
			}
		}
		if rooted {
			before, ok := separatorBefore(text, start)
			if !ok {
				return 0, 0
			}
			start = before
		}
		if !beginsPath(text, start) {
			return 0, 0
		}
		return start, end
	}})
	if len(segments) < 2 {
		return rules
	}
	encoded := written.ClaudeFolder(folder)
	if strings.Trim(encoded, "-") == "" {
		return rules
	}
	return append(rules, wordRule(name+"-encoded", encodedMask, encoded, func(text []byte, start, end int) bool {
		return beginsEncoded(text, start) && !isNameAt(text, end)
	}))
}

// beginsEncoded reports whether an encoded path can begin at an offset.
func beginsEncoded(text []byte, at int) bool {
	before, _ := utf8.DecodeLastRune(text[:at])
	return at == 0 || !isName(before) && before != '_' && before != '-' || afterEscape(text, at)
}

// keywordOf is the longest run of ASCII letters and digits of a name, in lower case, and where
// it begins. A name without one is its own keyword.
func keywordOf(name string) (keyword string, offset int) {
	for _, m := range words.FindAllStringIndex(name, -1) {
		if m[1]-m[0] > len(keyword) {
			keyword, offset = strings.ToLower(name[m[0]:m[1]]), m[0]
		}
	}
	if keyword == "" {
		if i := strings.IndexFunc(name, func(c rune) bool { return c > 0x7f && unicode.ToLower(c) == c }); i >= 0 {
			_, size := utf8.DecodeRuneInString(name[i:])
			return name[i : i+size], i
		}
		return name[:1], 0
	}
	return keyword, offset
}

var words = regexp.MustCompile(`[A-Za-z0-9]+`)

// homeRules find the home directories in the usual folders, the home directory of this process,
// and the temporary folders of macOS, which each user has one of.
func homeRules() []secrets.Rule {
	folders := []string{"home", "users", "documents"}
	rules := []secrets.Rule{
		{Name: "home", Mask: "~", Keywords: folders, Match: matchHome},
		{Name: "home-root", Mask: "~", Keywords: []string{"root"}, Match: func(text []byte, at int) (int, int) {
			start, ok := separatorBefore(text, at)
			if !ok || !beginsPath(text, start) || !endsPath(text, at+4) {
				return 0, 0
			}
			return start, at + 4
		}},
		// Below an unusual folder, or in the name that Claude Code gives to the folder of a project.
		{Name: "home-user", Mask: "user", Keywords: folders, Match: matchUser},
		{Name: "home-encoded", Mask: "user", Keywords: []string{"home-", "users-"}, Match: matchEncodedUser},
		{Name: "temporary", Mask: "user", Keywords: []string{"folders"}, Match: matchTemporary},
	}
	if home, err := os.UserHomeDir(); err == nil {
		rules = append(folderRules("home-own", home, "~", "home"), rules...)
	}
	return rules
}

// matchUser finds the name of a user after a folder with home directories.
func matchUser(text []byte, at int) (start, end int) {
	if _, ok := separatorBefore(text, at); !ok {
		return 0, 0
	}
	folder := bytes.IndexFunc(text[at:], func(c rune) bool { return c > 0x7f || !isASCIIWord(byte(c)) })
	if folder < 0 {
		return 0, 0
	}
	if word := text[at : at+folder]; bytes.EqualFold(word, []byte("documents")) {
		const more = "documents and settings"
		if folder = len(more); len(text) < at+folder || !bytes.EqualFold(text[at:at+folder], []byte(more)) {
			return 0, 0
		}
	} else if !bytes.EqualFold(word, []byte("home")) && !bytes.EqualFold(word, []byte("users")) {
		return 0, 0
	}
	start, ok := separatorAfter(text, at+folder)
	if !ok {
		return 0, 0
	}
	return start, nameEnd(text, start)
}

// matchHome finds a home directory: the folder, the user, and a drive or a folder before them.
func matchHome(text []byte, at int) (start, end int) {
	name, end := matchUser(text, at)
	if name == end {
		return 0, 0
	}
	start, _ = separatorBefore(text, at)
	if longer := beforeHome(text, start); beginsPath(text, longer) {
		return longer, end
	}
	if !beginsPath(text, start) {
		return 0, 0
	}
	return start, end
}

// beforeHome returns where the drive or the folder begins that may be before the folder with
// home directories: C: /mnt/c /var /export /usr /net /private /data or /x.
func beforeHome(text []byte, start int) int {
	if start >= 2 && text[start-1] == ':' && isASCIIWord(text[start-2]) {
		return start - 2
	}
	first := start
	for first > 0 && 'a' <= text[first-1] && text[first-1] <= 'z' {
		first--
	}
	before, ok := separatorBefore(text, first)
	word := string(text[first:start])
	if !ok || len(word) != 1 && !slices.Contains([]string{"var", "export", "usr", "net", "private", "data"}, word) {
		return start
	}
	if len(word) == 1 && before >= 3 && string(text[before-3:before]) == "mnt" {
		if mount, ok := separatorBefore(text, before-3); ok {
			return mount
		}
	}
	return before
}

// matchEncodedUser finds a user in the name that Claude Code gives to a project: -home-USER-shop.
func matchEncodedUser(text []byte, at int) (start, end int) {
	if at == 0 || text[at-1] != '-' {
		return 0, 0
	}
	if !beginsEncoded(text, at-1) {
		return 0, 0
	}
	start = at + bytes.IndexByte(text[at:], '-') + 1
	end = nameEnd(text, start)
	if i := bytes.IndexByte(text[start:end], '-'); i >= 0 {
		end = start + i
	}
	return start, end
}

// matchTemporary finds the folder of a user in /var/folders, of two names.
func matchTemporary(text []byte, at int) (start, end int) {
	before, ok := separatorBefore(text, at)
	if !ok || before < 3 || string(text[before-3:before]) != "var" {
		return 0, 0
	}
	start, ok = separatorAfter(text, at+len("folders"))
	if !ok {
		return 0, 0
	}
	end = nameEnd(text, start)
	if next, ok := separatorAfter(text, end); ok && end > start {
		return start, max(end, nameEnd(text, next))
	}
	return start, end
}

// placeRules find folders, and home directories. Folder N has the mask /path/N.
func placeRules(folders []string) (rules []secrets.Rule) {
	for i, folder := range folders {
		rules = append(rules, folderRules(fmt.Sprint("path-", i+1), folder, fmt.Sprint("/path/", i+1), fmt.Sprint("-path-", i+1))...)
	}
	// A folder comes before the folders above it, and before the home directory. The encoded name
	// of a folder may begin with the name of another one.
	depth := map[string]int{}
	for i, folder := range folders {
		depth[fmt.Sprint("path-", i+1)] = len(folder)
	}
	slices.SortStableFunc(rules, func(a, b secrets.Rule) int {
		return depth[strings.TrimSuffix(b.Name, "-encoded")] - depth[strings.TrimSuffix(a.Name, "-encoded")]
	})
	return append(rules, homeRules()...)
}

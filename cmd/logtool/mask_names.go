package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/convlog/convlog/internal/written"
	"github.com/convlog/convlog/secrets"
)

// isName reports whether a character is a part of a word.
func isName(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func isNameAt(text []byte, at int) bool {
	r, size := utf8.DecodeRune(text[at:])
	return size > 0 && (isName(r) || r == '_')
}

// isWhole reports whether text[start:end] is a whole word.
func isWhole(text []byte, start, end int) bool {
	before, _ := utf8.DecodeLastRune(text[:start])
	after, size := utf8.DecodeRune(text[end:])
	return (start == 0 || !isName(before) || afterEscape(text, start)) && (size == 0 || !isName(after))
}

// wordRule finds a text, in any case of its letters, where whole accepts its place.
func wordRule(name, mask, word string, whole func(text []byte, start, end int) bool) secrets.Rule {
	keyword, offset := keywordOf(word)
	return secrets.Rule{Name: name, Mask: mask, Keywords: []string{strings.ToLower(keyword)}, Match: func(text []byte, at int) (int, int) {
		start := at - offset
		end := start + len(word)
		if start < 0 || end > len(text) || !bytes.EqualFold(text[start:end], []byte(word)) || !whole(text, start, end) {
			return 0, 0
		}
		return start, end
	}}
}

// mailRule finds addresses of e-mail. The user git of an address of a repository, and noreply,
// are nobody's.
var mailRule = secrets.Rule{Name: "mail", Mask: "mail@example.com", Keywords: []string{"@"}, Match: func(text []byte, at int) (int, int) {
	start := at
	for start > 0 && (isASCIIWord(text[start-1]) || strings.IndexByte(".%+-", text[start-1]) >= 0) {
		start--
	}
	for n := start; n < at; n++ { // the end of an escape is no part of the name
		if n <= start+4 && afterEscape(text, n+1) {
			start = n + 1
		}
	}
	end, dot := at+1, 0
	for end < len(text) && (isASCIIWord(text[end]) || text[end] == '-' || text[end] == '.') {
		if text[end] == '.' {
			dot = end
		}
		end++
	}
	if dot == end-1 { // the end of a sentence
		end = dot
		dot = at + max(0, bytes.LastIndexByte(text[at:end], '.'))
	}
	if name := string(text[start:at]); name == "" || name == "git" || name == "noreply" || dot <= at+1 || !isDomain(text[dot+1:end]) {
		return 0, 0
	}
	return start, end
}}

// isDomain reports whether a text has the form of a top-level domain.
func isDomain(text []byte) bool {
	return len(text) >= 2 && !bytes.ContainsFunc(text, func(c rune) bool { return c < 'A' || c > 'z' || c > 'Z' && c < 'a' })
}

// authorRule finds the lines that git prints and reads about people, for collectNames.
var authorRule = secrets.Rule{Name: "author", Keywords: []string{"author", "committer", "tagger", "-by", "from", "user.name="}, Pattern: authorLine}

const authorLine = `(?:(?i:author|committer|tagger|[a-z]-by|from):?\s+[^<>"\\\n:]{1,100}?\s*(?:<|\\+u003[cC])[^<>\s"\\]{1,100}@[^<>\s"\\]{1,100}|user\.name=[^"\\\n]{1,100})`

var authorParts = regexp.MustCompile(`(?s)^(?:user\.name=(.*)|[\pL-]+:?\s+(.*?)\s*(?:<|\\+u003[cC])(.*))$`)

// names are the names of people in sessions.
type names struct {
	users, authors map[string]bool
	scanner        *secrets.Scanner
}

func newNames() (*names, error) {
	user := secrets.Rule{Name: "user", Keywords: []string{"home", "users", "documents"}, Match: matchUser}
	encoded := secrets.Rule{Name: "user", Keywords: []string{"home-", "users-"}, Match: matchEncodedUser}
	scanner, err := secrets.New(user, encoded, authorRule)
	return &names{map[string]bool{}, map[string]bool{}, scanner}, err
}

// collect adds the names in a text: the users of home directories, and the authors of git.
func (n *names) collect(text []byte) {
	for _, f := range n.scanner.Find(text) {
		found := string(text[f.Start:f.End])
		if f.Rule == "user" {
			n.add(n.users, strings.TrimRight(found, "."))
			continue
		}
		m := authorParts.FindStringSubmatch(found)
		if m == nil || strings.HasPrefix(m[3], "noreply@") {
			continue
		}
		n.add(n.authors, strings.TrimSpace(m[1]+m[2]))
	}
}

func (n *names) add(to map[string]bool, name string) {
	if utf8.RuneCountInString(name) >= 2 && strings.ContainsFunc(name, unicode.IsLetter) && !strings.Contains(name, "[bot]") &&
		!slices.Contains(nobody, strings.ToLower(name)) {
		to[name] = true
	}
}

// nobody are names of accounts, of examples and of programs: they tell nothing about a person.
var nobody = strings.Fields(`
	admin administrator agent app bot bob build builder ci claude code codex copilot coder cursor data default deploy dev developer
	devin docker example foo bar gemini git github gitlab guest home me my myuser name node opencode postgres public root runner
	server shared test tester ubuntu user username users vagrant vscode work worker workspace you your your-name yourname xxx`)

// rules find the names as whole words, and addresses.
func (n *names) rules() []secrets.Rule {
	rules := []secrets.Rule{mailRule}
	for i, name := range sortedNames(n.authors) {
		rules = append(rules, wordRule(fmt.Sprint("author-", i+1), "author", name, isWhole))
	}
	for i, name := range sortedNames(n.users) {
		rules = append(rules, wordRule(fmt.Sprint("user-", i+1), "user", name, isWhole))
		if encoded := written.ClaudeFolder(name); encoded != name && strings.Trim(encoded, "-") != "" {
			rules = append(rules, wordRule(fmt.Sprint("user-", i+1, "-encoded"), "user", encoded, isWhole))
		}
	}
	return rules
}

// sortedNames are the names, a longer one before a name that it begins with.
func sortedNames(set map[string]bool) (all []string) {
	for name := range set {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b string) int { return strings.Compare(b, a) })
	return all
}

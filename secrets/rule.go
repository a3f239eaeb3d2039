package secrets

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/convlog/convlog/internal/mark"
)

// Rule describes the form of one kind of secret.
type Rule struct {
	// Name is the name in a mask: lower-case letters, digits and hyphens.
	Name string
	// Finds says in a few words what the rule finds.
	Finds string
	// Pattern is a regular expression in the syntax of package regexp. If it has a
	// group, the first group is the secret, otherwise the whole match is.
	Pattern string
	// Match, in the place of Pattern, returns text[start:end] as the secret around a keyword
	// that begins at an offset; start and end are equal if there is none. Its keywords may be
	// of any script. It sees 16 KiB around the keyword in a body.
	Match func(text []byte, at int) (start, end int)
	// Keywords are short lower-case ASCII texts. Every match contains one of them, in
	// any case, within its first 64 bytes. Text without a keyword is not matched.
	Keywords []string
	// Reach is the most bytes from the keyword to the end of a match; 0 means 512.
	Reach int
	// Entropy is the least Shannon entropy of a secret, in bits for each byte. 0 accepts
	// any secret.
	Entropy float64
	// Mask replaces a secret; the empty Mask is [secret:NAME]. A rule with a Mask is for
	// views: it masks structural members too.
	Mask string
	// Allow are regular expressions of secrets that are harmless, for example
	// placeholders.
	Allow []string
}

// errInvalidRule reports a rule that no scanner accepts. The error names the rule.
var errInvalidRule = errors.New("invalid rule of secrets")

const (
	// before is how far a match may begin before its keyword, in bytes.
	before = 64
	// defaultReach is how far a match may end after the start of its keyword.
	defaultReach = 512
)

// compiled is a rule that is ready to match.
type compiled struct {
	name    string
	mask    string
	match   func(text []byte, at int) (start, end int) // in the place of pattern
	pattern *regexp.Regexp
	reach   int
	entropy float64
	allow   *regexp.Regexp // nil allows nothing
}

var ruleName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (r *Rule) compile() (c compiled, err error) {
	c = compiled{name: r.Name, mask: cmp.Or(r.Mask, mark.Mask(r.Name)), match: r.Match, reach: r.Reach, entropy: r.Entropy}
	if c.reach == 0 {
		c.reach = defaultReach
	}
	switch {
	case !ruleName.MatchString(r.Name):
		return c, fmt.Errorf("%w %q: the name has other characters than a-z, 0-9 and hyphens", errInvalidRule, r.Name)
	case len(r.Keywords) == 0:
		return c, fmt.Errorf("%w %q: no keyword", errInvalidRule, r.Name)
	case c.reach < 0 || c.reach > maxReach:
		return c, fmt.Errorf("%w %q: reach %d, at most %d", errInvalidRule, r.Name, r.Reach, maxReach)
	}
	for _, k := range r.Keywords {
		if k == "" || k != strings.ToLower(k) || strings.ContainsFunc(k, func(c rune) bool {
			return c <= 0x20 || c == 0x7f || c > 0x7f && r.Match == nil || c == '"' || c == '\\'
		}) {
			return c, fmt.Errorf("%w %q: keyword %q", errInvalidRule, r.Name, k)
		}
	}
	if c.pattern, err = regexp.Compile(r.Pattern); err != nil {
		return c, fmt.Errorf("%w %q: %w", errInvalidRule, r.Name, err)
	}
	if len(r.Allow) > 0 {
		if c.allow, err = regexp.Compile(`(?:` + strings.Join(r.Allow, `)|(?:`) + `)`); err != nil {
			return c, fmt.Errorf("%w %q: allow: %w", errInvalidRule, r.Name, err)
		}
	}
	return c, nil
}

// accepts reports whether a match is a secret.
func (c *compiled) accepts(secret []byte) bool {
	if len(secret) == 0 || c.entropy > 0 && entropy(secret) < c.entropy {
		return false
	}
	return c.allow == nil || !c.allow.Match(secret)
}

// entropy is the Shannon entropy of text, in bits for each byte.
func entropy(text []byte) (bits float64) {
	var counts [256]int
	for _, b := range text {
		counts[b]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(text))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

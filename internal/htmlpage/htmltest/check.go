// Package htmltest checks pages in tests.
package htmltest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// elements are the allowed elements and their attributes. data-… is allowed too.
var elements = map[string][]string{
	"html": {"lang"}, "head": nil, "meta": {"charset", "http-equiv", "content", "name"}, "title": nil, "style": nil, "body": nil,
	"link": {"rel", "href"}, "script": {"type", "src"},
	"header": {"class"}, "main": {"class", "id"}, "footer": {"class"}, "nav": {"class", "id", "aria-label"}, "aside": {"class", "aria-label"}, "h1": {"dir"}, "h2": {"class", "dir", "id", "tabindex"},
	"section": {"class", "id", "aria-label"}, "div": {"class", "id", "dir", "tabindex", "role", "aria-label"}, "span": {"class", "dir", "role", "aria-label"}, "b": {"class", "dir"}, "small": {"class"}, "mark": nil,
	"p": {"class"}, "code": {"class", "title"}, "pre": {"dir", "tabindex"}, "blockquote": nil, "em": nil, "strong": nil, "del": nil, "hr": nil, "br": nil,
	"ul": {"class"}, "ol": {"class", "start"}, "li": {"class"},
	"a": {"class", "id", "href", "rel", "dir", "aria-current"}, "time": {"datetime"},
	"details": {"class", "open"}, "summary": nil, "figure": nil, "figcaption": nil, "img": {"alt", "src", "loading"}, "audio": {"controls", "src"},
	"table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": {"class", "scope"}, "td": {"class"},
	"form": {"class", "method", "action", "role"}, "label": {"for"}, "output": {"for"}, "button": nil, "select": {"name"}, "option": {"value", "selected"},
	"input": {"type", "name", "value", "id", "checked", "placeholder", "aria-label", "disabled", "min", "max"}, "fieldset": {"class"}, "legend": nil,
	"svg": {"class", "viewBox", "preserveAspectRatio", "aria-hidden"}, "rect": {"class", "x", "width", "height"},
}

// void are the elements without an end tag.
var void = []string{"meta", "img", "link", "input", "br", "hr", "rect"}

var (
	tagForm       = regexp.MustCompile(`^<(/?)([a-z0-9]+)((?:\s+[a-zA-Z-]+(?:="[^"<>]*")?)*)\s*/?>`)
	attributeForm = regexp.MustCompile(`\s([a-zA-Z-]+)(?:="([^"]*)")?`)
	entityForm    = regexp.MustCompile(`^&(?:lt|gt|amp|quot|#34|#39|#43);`)
)

// Check returns an error if the page contains markup that the templates do not
// write. It is stricter than any browser, so a valid page means the same in all of
// them.
func Check(page string) error {
	body, ok := strings.CutPrefix(page, "<!DOCTYPE html>\n")
	if !ok {
		return fmt.Errorf("begins with %.40q", page)
	}
	if i := strings.IndexAny(body, "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"); i >= 0 {
		return fmt.Errorf("text in another order: %.60q", body[i:])
	}
	var open []string
	for i := 0; i < len(body); {
		switch c := body[i]; {
		case c == '<':
			m := tagForm.FindStringSubmatch(body[i:])
			if m == nil {
				return fmt.Errorf("invalid tag: %.60q", body[i:])
			}
			if err := checkTag(m[1] == "/", m[2], m[3], &open); err != nil {
				return err
			}
			i += len(m[0])
			if m[1] == "" && m[2] == "style" {
				i += strings.Index(body[i:], "</style>")
			}
		case c == '&' && !entityForm.MatchString(body[i:]):
			return fmt.Errorf("a bare &: %.60q", body[i:])
		case c == '>', c == '"', c < 0x20 && c != '\n' && c != '\t', c == 0x7f:
			return fmt.Errorf("not escaped: %.60q", body[i:])
		default:
			i++
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("left open: %q", open)
	}
	return nil
}

// served is what a page without a server must not have.
var served = regexp.MustCompile(`<(?:link|script|form|select|button|iframe)\b| (?:href|src)="[/?]`)

// CheckAlone checks a page that is read without a server.
func CheckAlone(page string) error {
	if found := served.FindString(page); found != "" {
		return fmt.Errorf("%q needs a server", found)
	}
	return Check(page)
}

func checkTag(end bool, name, attributes string, open *[]string) error {
	allowed, known := elements[name]
	if !known {
		return fmt.Errorf("element %q", name)
	}
	if end {
		n := len(*open)
		if n == 0 || (*open)[n-1] != name {
			return fmt.Errorf("</%s> in %q", name, *open)
		}
		*open = (*open)[:n-1]
		return nil
	}
	for _, m := range attributeForm.FindAllStringSubmatch(attributes, -1) {
		if !slices.Contains(allowed, m[1]) && !strings.HasPrefix(m[1], "data-") {
			return fmt.Errorf("attribute %q of %s", m[1], name)
		}
		if err := checkAddress(m[1], m[2]); err != nil {
			return err
		}
	}
	if !slices.Contains(void, name) {
		*open = append(*open, name)
	}
	return nil
}

func checkAddress(name, value string) error {
	begins := func(all ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(value, s) })
	}
	if name == "href" && !begins("#", "/", "?", "http://", "https://") || name == "src" && !begins("data:image/", "data:audio/", "/") {
		return fmt.Errorf("%s=%.60q", name, value)
	}
	return nil
}

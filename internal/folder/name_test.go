package folder

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"
)

func TestFileName(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, test := range []struct{ id, want string }{
		{"order-42", "order-42"},
		{"a.b_c-9", "a.b_c-9"},
		{"A", "%41"},
		{".", "%2e"},
		{"..", "%2e."},
		{".lock", "%2elock"},
		{"a/b", "a%2fb"},
		{"../../etc/passwd", "%2e.%2f..%2fetc%2fpasswd"},
		{`c:\con`, "c%3a%5ccon"},
		{"50%", "50%25"},
		{"~", "%7e"},
		{"é", "%c3%a9"},
		{"con", "%63on"},
		{"nul.txt", "%6eul.txt"},
		{"com1.a.b", "%63om1.a.b"},
		{"lpt0", "%6cpt0"},
		{"CON", "%43%4f%4e"},
		{"com¹", "com%c2%b9"},
		{"console", "console"},
		{"con-1", "con-1"},
		{"com10", "com10"},
		{"a.con", "a.con"},
		{"aux." + strings.Repeat("x", 200), "%61ux." + strings.Repeat("x", 141) + "~"},
		{"a.", "a."},
		{"a ", "a%20"},
		{strings.Repeat("x", 180), strings.Repeat("x", 180)},
		{long, long[:147] + "~2ed848c43cadf69dd0a95ab0dc0ed3c0"},
		{strings.Repeat("x", 146) + strings.Repeat("É", 20), strings.Repeat("x", 146) + "~"},
	} {
		got := FileName(test.id)
		if prefix, hashed := strings.CutSuffix(test.want, "~"); hashed {
			if !strings.HasPrefix(got, prefix+"~") || len(got) != len(prefix)+1+hashDigits {
				t.Errorf("FileName(%q) = %q: an escape was cut in half", test.id, got)
			}
		} else if got != test.want && len(test.id) <= MaxName {
			t.Errorf("FileName(%q) = %q, want %q", test.id, got, test.want)
		}
		if len(got) > MaxName {
			t.Errorf("FileName(%q) has %d bytes", test.id, len(got))
		}
	}
}

func TestNamesRoundTrip(t *testing.T) {
	check := func(raw []byte) bool {
		id := string(raw)
		if id == "" || len(id) > 200 {
			return true
		}
		name := FileName(id)
		back, ok := SessionID(name)
		hashed := strings.Contains(name, "~")
		return filepath.Base(name) == name && name[0] != '.' && name == strings.ToLower(name) &&
			len(name) <= MaxName && ok != hashed && (hashed || back == id)
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 5000}); err != nil {
		t.Fatal(err)
	}
}

func TestSessionIDRefuses(t *testing.T) {
	for _, name := range []string{"", "Foo", "%41%", "%4", "%zz", "%61", "%2E", "a b", ".a", "x~0011", "%C3", "con", "nul.x", "com1"} {
		if id, ok := SessionID(name); ok {
			t.Errorf("SessionID(%q) = %q: not a name that FileName returns", name, id)
		}
	}
}

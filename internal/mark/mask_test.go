package mark

import "testing"

func TestIsMaskOf(t *testing.T) {
	m := Mask("jwt")
	for _, test := range []struct {
		masked, text string
		want         bool
	}{
		{"", "", true}, {"a", "a", true}, {"a", "b", false}, {m, "", true}, {m, "anything", true},
		{"a " + m + " b", "a secret b", true}, {"a " + m + " b", "a secret c", false}, {"a " + m + " b", "x secret b", false},
		{"a " + m + " b " + m, "a 1 b 2", true}, {m + "," + m + ".", "1,2.", true}, {m + "," + m + ".", "1;2.", false},
		{"a" + m + "a", "a", false}, {"[secret:", "[secret:", true}, {"[secret:x", "[secret:y", false}, {m, m, true},
		{m + "x" + m + "y", "1x2z", false},
	} {
		if got := IsMaskOf(test.masked, test.text); got != test.want {
			t.Errorf("IsMaskOf(%q, %q) = %v", test.masked, test.text, got)
		}
	}
}

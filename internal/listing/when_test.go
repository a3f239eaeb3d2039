package listing

import (
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	zone := time.Local
	t.Cleanup(func() { time.Local = zone })
	time.Local = time.FixedZone("east", 2*60*60)
	now := time.Date(2026, 3, 1, 0, 30, 0, 0, time.Local)
	for text, want := range map[string][2]string{
		"2026-02-28":                {"2026-02-27T22:00:00Z", "2026-02-28T22:00:00Z"},
		"2026-02-28T09:30":          {"2026-02-28T07:30:00Z", "2026-02-28T07:31:00Z"},
		"2026-02-28 09:30:15":       {"2026-02-28T07:30:15Z", "2026-02-28T07:30:16Z"},
		"2026-02-28T09:30:15Z":      {"2026-02-28T09:30:15Z", "2026-02-28T09:30:16Z"},
		"2026-02-28T09:30:15+01:00": {"2026-02-28T08:30:15Z", "2026-02-28T08:30:16Z"},
		"today":                     {"2026-02-28T22:00:00Z", "2026-03-01T22:00:00Z"},
		"yesterday":                 {"2026-02-27T22:00:00Z", "2026-02-28T22:00:00Z"},
		"sunday":                    {"2026-02-28T22:00:00Z", "2026-03-01T22:00:00Z"},
		"Monday":                    {"2026-02-22T22:00:00Z", "2026-02-23T22:00:00Z"},
		"saturday":                  {"2026-02-27T22:00:00Z", "2026-02-28T22:00:00Z"},
		"90m":                       {"2026-02-28T21:00:00Z", "2026-02-28T21:00:00Z"},
		"1d":                        {"2026-02-27T22:30:00Z", "2026-02-27T22:30:00Z"},
		"2w":                        {"2026-02-14T22:30:00Z", "2026-02-14T22:30:00Z"},
	} {
		begin, end, err := ParseWhen(text, now)
		if got := [2]string{begin.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339)}; err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", text, got, err, want)
		}
	}
	if begin, end, err := ParseWhen("", now); err != nil || !begin.IsZero() || !end.IsZero() {
		t.Errorf("nothing is %v to %v, %v", begin, end, err)
	}
	for _, text := range []string{"soon", "mon", "7", "-1d", "d", "1x", "2026-02-30", "2026", "-5m", "99999999d", "9999999999w"} {
		if _, _, err := ParseWhen(text, now); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

package line

import (
	"testing"
	"time"
)

func TestTimestamps(t *testing.T) {
	for _, want := range []time.Time{
		time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(2000, 2, 29, 12, 0, 0, 1, time.UTC),
		time.Date(2026, 3, 1, 0, 0, 0, 100, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		text := appendTimestamp(nil, want)
		if got := want.Format("2006-01-02T15:04:05.000000000Z"); got != string(text) {
			t.Errorf("wrote %s, want %s", text, got)
		}
		if got, ok := parseTimestamp(text); !ok || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", text, got, ok)
		}
	}
	for day := int64(-800_000); day < 2_900_000; day += 97 {
		want := time.Unix(day*86400, 0).UTC()
		if want.Year() < 1 || want.Year() > 9999 {
			continue
		}
		if got, ok := parseTimestamp(appendTimestamp(nil, want)); !ok || !got.Equal(want) {
			t.Fatalf("day %d: got %v, want %v", day, got, want)
		}
	}
}

// FuzzTimestamp compares parseTimestamp with package time, for the one valid form.
func FuzzTimestamp(f *testing.F) {
	const layout = "2006-01-02T15:04:05.000000000Z"
	for _, text := range []string{layout, "2024-02-29T23:59:59.999999999Z", "2023-02-29T00:00:00.000000000Z", "0000-01-01T00:00:00.000000000Z",
		"9999-12-31T23:59:60.000000000Z", "1900-02-29T00:00:00.000000000Z", "2006-01-02T15:04:05,000000000Z",
		"9999-12-31T23:59:00.-00000000Z"} {
		f.Add(text, int64(len(text)), int64(7))
	}
	f.Fuzz(func(t *testing.T, text string, sec, nsec int64) {
		got, ok := parseTimestamp([]byte(text))
		want, err := time.Parse(layout, text)
		if expected := err == nil && want.Format(layout) == text && want.Year() >= 1; ok != expected {
			t.Fatalf("%q: ok is %v, want %v (%v)", text, ok, expected, err)
		}
		if ok && (!got.Equal(want) || string(appendTimestamp(nil, got)) != text) {
			t.Fatalf("%q is parsed as %v, want %v, and prints as %s", text, got, want, appendTimestamp(nil, got))
		}
		at := time.Unix(sec, nsec)
		if year := at.UTC().Year(); year < 1 || year > 9999 {
			return
		}
		if back, ok := parseTimestamp(appendTimestamp(nil, at)); !ok || !back.Equal(at) {
			t.Fatalf("%v prints as %s, which is %v", at, appendTimestamp(nil, at), back)
		}
	})
}

package listing

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// whenLayouts are the layouts of times in flags, and the length of each time. The zone
// is the user's.
var whenLayouts = []struct {
	layout string
	days   int
	length time.Duration
}{
	{time.DateOnly, 1, 0},
	{"2006-01-02T15:04", 0, time.Minute},
	{"2006-01-02 15:04", 0, time.Minute},
	{"2006-01-02T15:04:05", 0, time.Second},
	{"2006-01-02 15:04:05", 0, time.Second},
	{time.RFC3339, 0, time.Second},
}

// ParseWhen parses a day, a time or an age, and returns its begin and end. Empty text
// is the zero time.
func ParseWhen(text string, now time.Time) (begin, end time.Time, err error) {
	if text == "" {
		return begin, end, nil
	}
	for _, x := range whenLayouts {
		if t, err := time.ParseInLocation(x.layout, text, time.Local); err == nil {
			return t, t.AddDate(0, 0, x.days).Add(x.length), nil
		}
	}
	word := strings.ToLower(text)
	switch word {
	case "today":
		return day(now, 0), day(now, 1), nil
	case "yesterday":
		return day(now, -1), day(now, 0), nil
	}
	for n := range 7 { // a day of the week is today or in the last six days
		if strings.ToLower(day(now, -n).Weekday().String()) == word {
			return day(now, -n), day(now, 1-n), nil
		}
	}
	d, ok := ParseAgo(text)
	if !ok {
		return begin, end, fmt.Errorf("is a day (today, yesterday, monday, 2026-03-01), a time (2026-03-01T09:30) or how long ago (12h, 7d, 2w), not %q", text)
	}
	t := now.Add(-d)
	return t, t, nil
}

// day is the start of the day n days after now.
func day(now time.Time, n int) time.Time {
	y, m, d := now.Local().Date()
	return time.Date(y, m, d+n, 0, 0, 0, 0, time.Local)
}

// ParseAgo parses a duration, also in days or weeks.
func ParseAgo(text string) (time.Duration, bool) {
	units := map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
	for suffix, unit := range units {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			const most = 100 * 365
			n, err := strconv.Atoi(number)
			return time.Duration(n) * unit, err == nil && 0 <= n && n <= most/int(unit/(24*time.Hour))
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d >= 0
}

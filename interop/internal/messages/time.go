package messages

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/parts"
)

// TimeOf is the time in the first member with one; zero if there is none.
func TimeOf(o *parts.Members) time.Time {
	for _, name := range []string{"timestamp", "created_at", "created", "create_time"} {
		v := o.Peek(name)
		if s, ok := rawjson.Text(v); ok {
			if t, err := time.Parse(time.RFC3339, s); err == nil {
				return t
			}
		}
		if t := unixTime(v); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// unixTime parses a number of seconds or milliseconds; zero if v is neither.
func unixTime(v jsontext.Value) time.Time {
	if v.Kind() != '0' {
		return time.Time{}
	}
	whole, _, _ := strings.Cut(string(v), ".")
	number, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case err != nil || number < 1e8:
		return time.Time{}
	case number < 1e11:
		return time.Unix(number, 0)
	case number < 1e14:
		return time.UnixMilli(number)
	}
	return time.Time{}
}

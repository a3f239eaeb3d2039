package httpmodel

import (
	"bufio"
	"bytes"
	"io"
	"iter"
)

// serverEvent is a server-sent event: its type, empty if it has none, and its data.
type serverEvent struct {
	name string
	data []byte
}

// events parses a stream of server-sent events, with any of the three ends of line. Data
// is valid until the next event. The stream may end without a blank line: an event that
// was cut off there has data that is no JSON. A line has at most limit bytes.
func events(r io.Reader, limit int) iter.Seq2[serverEvent, error] {
	return func(yield func(serverEvent, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, limit)
		lines.Split(splitLine)
		var e serverEvent
		hasData := false
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) > 0 {
				hasData = e.field(line, hasData) || hasData
				continue
			}
			if hasData && !yield(e, nil) {
				return
			}
			e, hasData = serverEvent{data: e.data[:0]}, false
		}
		if err := lines.Err(); err != nil {
			yield(serverEvent{}, err)
		} else if hasData {
			yield(e, nil)
		}
	}
}

// field adds a line to the event. It reports whether the line has data.
func (e *serverEvent) field(line []byte, again bool) bool {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(bytes.TrimPrefix(name, []byte("\xef\xbb\xbf"))) {
	case "event":
		e.name = string(value)
	case "data":
		if again {
			e.data = append(e.data, '\n')
		}
		e.data = append(e.data, value...)
		return true
	}
	return false
}

// splitLine is a bufio.SplitFunc for lines that end in CR, LF or CRLF.
func splitLine(data []byte, atEOF bool) (advance int, line []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0:
		return 0, nil, nil
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	case i+1 < len(data) || atEOF:
		return i + 1, data[:i], nil
	default: // the LF of a CRLF may follow
		return 0, nil, nil
	}
}

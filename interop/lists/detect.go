package lists

import (
	"bytes"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/interop/internal/head"
	"github.com/convlog/convlog/interop/internal/messages"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// Detect reports whether a file begins with messages, or with an object with a list
// of messages, and none of them is of the history of a program. The head may end
// anywhere.
func (Format) Detect(_ string, first []byte) bool {
	first = head.Trim(first)
	return beginsLists(first) && !isForeign(first)
}

func beginsLists(first []byte) bool {
	for range 2 { // at most a list of conversations
		if !bytes.HasPrefix(first, []byte{'['}) {
			break
		}
		first = head.Trim(first[1:])
	}
	if !bytes.HasPrefix(first, []byte{'{'}) {
		return false
	}
	v, err := lax(first).ReadValue()
	if err != nil {
		return beginsMessage(first) || beginsList(first) || beginsPair(first)
	}
	o, err := parts.Open(v)
	if err != nil {
		return false
	}
	_, isPair := fromPair(&records.Record{Value: v}, &o)
	return isPair || messages.IsMessage(v) || len(listsOf(&o)) > 0
}

// beginsPair reports whether a truncated object has a request or a response.
func beginsPair(b []byte) bool {
	h := head.Object(b)
	for _, name := range []string{"request", "body", "response"} {
		if inner := h[name]; len(inner) > 0 && inner[0] == '{' {
			if beginsMessage(inner) || beginsList(inner) || beginsPair(inner) {
				return true
			}
		}
	}
	return false
}

func lax(b []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(b), jsontext.AllowInvalidUTF8(true))
}

// beginsMessage reports whether a truncated object is a message. It checks all whole
// members, and the name of the last one.
func beginsMessage(b []byte) bool {
	d := lax(b)
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	end := "}"
	at := d.InputOffset()
	for d.PeekKind() == '"' {
		if _, err := d.ReadToken(); err != nil {
			break
		}
		name := d.InputOffset()
		if d.SkipValue() != nil {
			at, end = name, ":null}"
			break
		}
		at = d.InputOffset()
	}
	cut := append(bytes.Clone(b[:at]), end...)
	o, err := parts.Open(cut)
	return err == nil && (messages.IsMessage(cut) || o.Has("model") && o.Has("tools"))
}

// beginsList reports whether a truncated object has a list of messages.
func beginsList(b []byte) bool {
	d := lax(b)
	if intoList(d) == "" {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	first := bytes.TrimLeft(b[d.InputOffset():], " \t\r\n")
	if !bytes.HasPrefix(first, []byte{'{'}) {
		return false
	}
	if v, err := lax(first).ReadValue(); err == nil {
		return messages.IsMessage(v) || isTurn(v) || isChoice(v)
	}
	return beginsMessage(first) || beginsTurn(first)
}

// beginsTurn reports whether a truncated object is a turn or a choice.
func beginsTurn(b []byte) bool {
	h := head.Object(b)
	return speakers[h.Text("from")] != "" && h.Has("value") || beginsMessage(h["message"])
}

// intoList skips the members before a list of messages, and returns the name of the
// list; empty if there is none.
func intoList(d *jsontext.Decoder) (list string) {
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ""
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return ""
		}
		if list := name.String(); slices.Contains(listNames, list) && d.PeekKind() == '[' {
			return list
		}
		if d.SkipValue() != nil {
			return ""
		}
	}
	return ""
}

// closeList makes a valid value of a truncated one: its list ends after the last
// whole element. closeList returns nil if there is no whole element. It also returns
// nil for a response: the missing usage comes after the list, and no later import
// would add it.
func closeList(b []byte) []byte {
	d := jsontext.NewDecoder(bytes.NewBuffer(b))
	end := "]"
	if d.PeekKind() == '{' {
		if list := intoList(d); list == "" || list == "output" || list == choicesName {
			return nil
		}
		end = "]}"
	}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '[' {
		return nil
	}
	for n := 0; ; n++ {
		at := d.InputOffset()
		if _, err := d.ReadValue(); err != nil && n == 0 {
			return nil
		} else if err != nil {
			return append(bytes.Clone(b[:at]), end...)
		}
	}
}

package records

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/convlog/convlog/internal/testsize"
)

// values are the records of a damaged file, and the number of rejections.
func values(t *testing.T, content string) (all []string, rejected int) {
	t.Helper()
	for _, r := range rows(t, content) {
		if r.Rejected != "" {
			rejected++
			continue
		}
		all = append(all, r.Value)
	}
	return all, rejected
}

const nextRecord = `{"type":"user","text":"{\"a\":1} and"}`

// A record after a run of NULs, or after a record that is cut off, is read.
func TestRecordAfterDamage(t *testing.T) {
	for before, read := range map[string]bool{
		"\x00\x00\x00":                    true,
		"{\"type\":\"us\x00\x00":          true,
		"{\"type\":\"user\"\x00\x00":      true,
		`{"type":"user","message":"Hel`:   true,
		`{"type":"user","mess`:            true,
		`{"type":"user","message"`:        true,
		`{"type":"user",`:                 true,
		`{"type":"user","n":12`:           true,
		`{"type":"user","n":tr`:           true,
		`{"a":{"b":1}`:                    true,
		`{"a":[1,2`:                       true,
		`{"a":"\`:                         true,
		`{`:                               true,
		`{"a":[1,`:                        false, // the next record is a value of the first one
		`{"a":`:                           false,
		"no JSON ":                        false,
		"{\"a\":\"one\x00\x00\x00 two\"}": true,
	} {
		for _, after := range []string{"\n", "\n{\"last\":1}\n", ""} {
			all, rejected := values(t, before+nextRecord+after)
			found := len(all) > 0 && all[0] == nextRecord
			if found != read || rejected != 1 {
				t.Errorf("after %q: %q, %d rejected", before, all, rejected)
			}
			if strings.Contains(after, "last") && all[len(all)-1] != `{"last":1}` {
				t.Errorf("after %q: the last record is missing: %q", before, all)
			}
		}
	}
}

func TestDamageWithoutARecordAfterIt(t *testing.T) {
	for _, line := range []string{"\x00\x00", "{\"a\":\"\x00", `{"a":"b"{"c`, `{"a" "{b`, "}", "\x00{"} {
		if all, rejected := values(t, line+"\n"); len(all) != 0 || rejected != 1 {
			t.Errorf("%q: %q, %d rejected", line, all, rejected)
		}
	}
}

// Law: the record after a record that is cut anywhere is read, or the line is rejected, and the
// next line is read.
func TestAnyCutRecord(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		first := rapid.SampledFrom([]string{nextRecord, `{"a":[{"b":{}},null,-1.5e3],"c":"d"}`, `{"é":"\u00e9 {"}`}).Draw(r, "first")
		cut := first[:rapid.IntRange(1, len(first)-1).Draw(r, "cut")]
		all, rejected := values(t, cut+strings.Repeat("\x00", rapid.IntRange(0, 3).Draw(r, "zeros"))+nextRecord+"\n{\"last\":1}\n")
		if len(all) == 0 || all[len(all)-1] != `{"last":1}` || rejected == 0 {
			t.Errorf("after %q: %q, %d rejected", cut, all, rejected)
		}
		for _, v := range all[:len(all)-1] {
			if v != nextRecord {
				t.Errorf("after %q: %q", cut, all)
			}
		}
	})
}

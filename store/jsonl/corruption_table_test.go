package jsonl

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/convlog/convlog/internal/witness"
)

// corruption is a row of the table: an edit of the main session's file and the expected
// outcome.
type corruption struct {
	name string
	edit func(p *fixture) []byte
	want func(p *fixture) outcome
}

// all is the number of events in the main session. Its appends end at seqs 1, 3, 4, 7,
// 8, 9, 10, 11, 13, 14, 15, 18, 19, 20 and 22.
const all = 22

// lines returns a function that edits the lines of the file.
func lines(edit func(l [][]byte) [][]byte) func(*fixture) []byte {
	return func(p *fixture) []byte {
		l := slices.Clone(p.lines)
		for i := range l {
			l[i] = bytes.Clone(l[i])
		}
		return bytes.Join(edit(l), nil)
	}
}

// inLine edits the line of one seq.
func inLine(seq int, edit func(l []byte) []byte) func(*fixture) []byte {
	return lines(func(l [][]byte) [][]byte {
		l[seq-1] = edit(l[seq-1])
		return l
	})
}

// file edits the bytes of the file.
func file(edit func(p *fixture, b []byte) []byte) func(*fixture) []byte {
	return func(p *fixture) []byte { return edit(p, bytes.Clone(p.main)) }
}

// swap replaces bytes that must exist.
func swap(old, fresh string) func([]byte) []byte {
	return func(l []byte) []byte {
		if !bytes.Contains(l, []byte(old)) {
			panic("the line lacks " + old)
		}
		return bytes.Replace(l, []byte(old), []byte(fresh), 1)
	}
}

func always(o outcome) func(*fixture) outcome { return func(*fixture) outcome { return o } }

func reads(n int) func(*fixture) outcome { return always(outcome{kind: same, forward: n, backward: n}) }

// bad expects damage at the line of seq.
func bad(seq int) func(*fixture) outcome { return badFor(seq, all-seq) }

// badFor expects damage at the line of seq, and n events in a backward read.
func badFor(seq, behind int) func(*fixture) outcome {
	return func(p *fixture) outcome {
		o := outcome{kind: corrupt, forward: seq - 1, backward: behind, at: p.start[seq-1], seq: int64(seq)}
		if seq == 1 {
			o.seq = 0 // it is unknown whether the session begins with seq 1
		}
		return o
	}
}

// tornAfter expects a torn tail after the line of seq.
func tornAfter(seq int) func(*fixture) outcome {
	return func(p *fixture) outcome { return outcome{kind: torn, forward: seq, at: p.start[seq]} }
}

func lostAfter(seq int) func(*fixture) outcome {
	return func(p *fixture) outcome { return outcome{kind: lostTail, forward: seq, at: p.start[seq]} }
}

// holeBlock returns the offset of a block within the lines of seqs 5 to 13.
func (p *fixture) holeBlock(size int64) (at int64) { return (p.start[4] + size - 1) / size * size }

// seqAt returns the seq of the line at an offset.
func (p *fixture) seqAt(at int64) int {
	i, found := slices.BinarySearch(p.start, at)
	if found {
		i++
	}
	return i
}

// holed expects a torn tail because of a hole at an offset.
func holed(at func(p *fixture) int64) func(*fixture) outcome {
	return func(p *fixture) outcome {
		n := p.completeLines(p.start[p.seqAt(at(p))-1])
		return outcome{kind: lostTail, forward: n, at: p.start[n]}
	}
}

func flipped(seq int, name string, at func(l []byte) int, want func(*fixture) outcome) corruption {
	return corruption{name, inLine(seq, func(l []byte) []byte {
		l[at(l)] ^= 1
		return l
	}), want}
}

func inMember(name string) func([]byte) int {
	return func(l []byte) int { return bytes.Index(l, []byte(`"`+name+`":`)) + len(name) + 5 }
}

func corruptions() []corruption {
	const newline = "\n"
	return []corruption{
		flipped(4, "a bit of data", inMember("data"), bad(4)),
		flipped(9, "a bit of redacted data", inMember("kept"), bad(9)),
		flipped(8, "a bit of the digest of spilled data", inMember("digest"), bad(8)),
		flipped(12, "a bit of an unknown member", inMember("priority"), bad(12)),
		flipped(14, "a bit of a cut", inMember("cut"), bad(14)),
		flipped(6, "a bit within an append", inMember("data"), bad(6)),
		flipped(1, "a bit of the first line", inMember("data"), bad(1)),
		flipped(4, "a newline", func(l []byte) int { return len(l) - 1 }, badFor(4, all-5)),
		flipped(22, "a bit of the last line", inMember("data"), lostAfter(20)),
		flipped(21, "a bit of the last append's first line", inMember("data"), badFor(21, 0)),
		flipped(22, "the last brace", func(l []byte) int { return len(l) - 2 }, lostAfter(20)),
		flipped(22, "the last newline", func(l []byte) int { return len(l) - 1 }, tornAfter(20)),

		{"a line is repeated", lines(func(l [][]byte) [][]byte { return slices.Insert(l, 10, l[9]) }), badFor(11, all-9)},
		{"the last line is repeated", lines(func(l [][]byte) [][]byte { return append(l, l[all-1]) }), badFor(all+1, 0)},
		{"an append is repeated", lines(func(l [][]byte) [][]byte { return slices.Insert(l, 7, l[4:7]...) }), badFor(8, all-4)},
		{"an early line is replayed at the end", lines(func(l [][]byte) [][]byte { return append(l, l[3]) }), badFor(all+1, 0)},
		{"the first line is lost", lines(func(l [][]byte) [][]byte { return l[1:] }), badFor(1, all-2)},
		{"the first append is all that is left", lines(func(l [][]byte) [][]byte { return l[:1] }), always(outcome{kind: older, forward: 1})},
		{"a line is lost", lines(func(l [][]byte) [][]byte { return slices.Delete(l, 9, 10) }), badFor(10, all-10)},
		{"an append's first line is lost", lines(func(l [][]byte) [][]byte { return slices.Delete(l, 4, 5) }), badFor(5, all-5)},
		{"an append's middle line is lost", lines(func(l [][]byte) [][]byte { return slices.Delete(l, 5, 6) }), badFor(6, all-6)},
		{"an append's last line is lost", lines(func(l [][]byte) [][]byte { return slices.Delete(l, 6, 7) }), badFor(7, all-7)},
		{"a whole append is lost", lines(func(l [][]byte) [][]byte { return slices.Delete(l, 4, 7) }), badFor(5, all-7)},
		{"the last line is lost", lines(func(l [][]byte) [][]byte { return l[:all-1] }), tornAfter(20)},
		{"the last append is lost", lines(func(l [][]byte) [][]byte { return l[:all-2] }), always(outcome{kind: older, forward: 20})},
		{"two lines are swapped", lines(func(l [][]byte) [][]byte {
			l[9], l[10] = l[10], l[9]
			return l
		}), badFor(10, all-11)},
		{"two appends are swapped", lines(func(l [][]byte) [][]byte {
			return slices.Concat(l[:3], l[4:7], l[3:4], l[7:])
		}), badFor(4, all-7)},
		{"the lines are reversed", lines(func(l [][]byte) [][]byte {
			slices.Reverse(l)
			return l
		}), badFor(1, 0)},

		{"NULs in the place of a line", inLine(10, func(l []byte) []byte { return slices.Concat(make([]byte, len(l)-1), []byte(newline)) }), bad(10)},
		{"NULs at the start of a line", inLine(10, func(l []byte) []byte { return slices.Concat(make([]byte, 5), l[5:]) }), bad(10)},
		{"a NUL within a line", inLine(10, func(l []byte) []byte { return slices.Concat(l[:40], []byte{0}, l[41:]) }), bad(10)},
		{"a lost block", file(func(p *fixture, b []byte) []byte {
			at := p.holeBlock(512)
			clear(b[at : at+512])
			return b
		}), holed(func(p *fixture) int64 { return p.holeBlock(512) })},
		{"a lost page", file(func(p *fixture, b []byte) []byte {
			clear(b[4096:8192])
			return b
		}), func(p *fixture) outcome {
			return lostAfter(p.completeLines(4096))(p) // because one append follows it
		}},
		{"NULs from a block on to the end", file(func(p *fixture, b []byte) []byte {
			clear(b[p.holeBlock(512):])
			return b
		}), func(p *fixture) outcome {
			return tornAfter(p.completeLines(p.holeBlock(512)))(p)
		}},
		{"NULs from a line on to the end", file(func(p *fixture, b []byte) []byte {
			clear(b[p.start[10]:])
			return b
		}), tornAfter(10)},
		{"NULs after the end", file(func(_ *fixture, b []byte) []byte { return append(b, make([]byte, 5000)...) }), tornAfter(all)},

		{"two lines are one", inLine(10, func(l []byte) []byte { return l[:len(l)-1] }), badFor(10, all-11)},
		{"two objects with a blank between", inLine(10, func(l []byte) []byte { return append(l[:len(l)-1], ' ') }), badFor(10, all-11)},
		{"two objects with a comma between", inLine(10, func(l []byte) []byte { return append(l[:len(l)-1], ',') }), badFor(10, all-11)},
		{"the last two lines are one", inLine(21, func(l []byte) []byte { return l[:len(l)-1] }), lostAfter(20)},
		{"the last newline is missing", inLine(all, func(l []byte) []byte { return l[:len(l)-1] }), tornAfter(20)},
		{"CRLF on all lines", file(func(_ *fixture, b []byte) []byte { return bytes.ReplaceAll(b, []byte(newline), []byte("\r\n")) }), reads(all)},
		{"CRLF on one line", inLine(10, swap(newline, "\r\n")), reads(all)},
		{"CRLF on the last line", inLine(all, swap(newline, "\r\n")), reads(all)},
		{"CR alone", inLine(10, swap(newline, "\r")), badFor(10, all-11)},
		{"a blank line", lines(func(l [][]byte) [][]byte { return slices.Insert(l, 10, []byte(newline)) }), badFor(11, all-10)},
		{"a line of blanks", lines(func(l [][]byte) [][]byte { return slices.Insert(l, 10, []byte("  \n")) }), badFor(11, all-10)},
		{"a blank line first", lines(func(l [][]byte) [][]byte { return slices.Insert(l, 0, []byte(newline)) }), badFor(1, all)},
		{"a blank line at the end", lines(func(l [][]byte) [][]byte { return append(l, []byte(newline)) }), tornAfter(all)},
		{"a byte order mark", file(func(_ *fixture, b []byte) []byte { return append([]byte("\ufeff"), b...) }), bad(1)},

		{"members in another order", inLine(10, reordered), reads(all)},
		{"members in another order, last line", inLine(all, reordered), reads(all)},
		{"members in another order, one value changed", inLine(10, func(l []byte) []byte {
			return swap(`"role":"user"`, `"role":"uses"`)(reordered(l))
		}), bad(10)},
		{"white space between members", inLine(10, swap(`,"seq":10,`, ` , "seq" : 10 , `)), reads(all)},
		{"white space before the line", inLine(10, func(l []byte) []byte { return append([]byte(" \t"), l...) }), reads(all)},
		{"white space after the line", inLine(10, func(l []byte) []byte { return append(l[:len(l)-1], " \n"...) }), reads(all)},
		{"white space in data", inLine(10, swap(`"data":{`, `"data":{ `)), reads(all)},
		{"white space in a string", inLine(11, swap(`go on`, `go  on`)), bad(11)},
		{"an escape in a name", inLine(10, swap(`"seq"`, `"s\u0065q"`)), reads(all)},
		{"an escape in data", inLine(11, swap(`go on`, `go\u0020on`)), bad(11)},
		{"upper-case digits in the crc", file(func(p *fixture, b []byte) []byte {
			at := p.start[p.lettered()-1]
			return slices.Concat(b[:at+8], bytes.ToUpper(b[at+8:at+16]), b[at+16:])
		}), func(p *fixture) outcome { return bad(p.lettered())(p) }},
		{"a member twice", inLine(10, swap(`"seq":10,`, `"seq":10,"seq":10,`)), bad(10)},
		{"a member more", inLine(10, swap(`"data":`, `"note":1,"data":`)), bad(10)},

		{"a newer version of the envelope", inLine(10, swap(`"v":1`, `"v":2`)), newerAt(10)},
		{"a newer version of the envelope at the end", inLine(all, swap(`"v":1`, `"v":2`)), newerAt(all)},
		{"an older version of the envelope", inLine(10, swap(`"v":1`, `"v":0`)), bad(10)},
		{"a foreign line", lines(func(l [][]byte) [][]byte { return slices.Insert(l, 10, []byte(`{"type":"user"}`+newline)) }), badFor(11, all-10)},
		{"a foreign line at the end", lines(func(l [][]byte) [][]byte { return append(l, []byte(`{"type":"user"}`+newline)) }), badFor(all+1, 0)},
		{"a line without crc", inLine(10, func(l []byte) []byte { return append([]byte("{"), l[18:]...) }), bad(10)},
		{"a line of another session", file(func(p *fixture, b []byte) []byte {
			other, _, _ := bytes.Cut(p.files[witness.Other+extension], []byte(newline))
			return slices.Concat(b[:p.start[10]], other, []byte(newline), b[p.start[10]:])
		}), badFor(11, all-10)},

		{"garbage after the end", file(func(_ *fixture, b []byte) []byte { return append(b, "garbage"...) }), tornAfter(all)},
		{"garbage lines after the end", file(func(_ *fixture, b []byte) []byte { return append(b, "garbage\nmore\n"...) }), lostAfter(all)},
		{"garbage like an object after the end", file(func(_ *fixture, b []byte) []byte { return append(b, "{\"a\":}\n"...) }), lostAfter(all)},
		{"garbage before the start", file(func(_ *fixture, b []byte) []byte { return append([]byte("garbage\n"), b...) }), badFor(1, all)},
		{"only garbage", file(func(*fixture, []byte) []byte { return []byte("garbage\n") }), always(outcome{kind: garbage})},
		{"an empty file", file(func(*fixture, []byte) []byte { return nil }), always(outcome{kind: missing})},
		{"another session's file", file(func(p *fixture, _ []byte) []byte { return p.files[witness.Other+extension] }), badFor(1, 0)},
		{"another session's lines at the end", file(func(p *fixture, b []byte) []byte {
			return append(b, p.files[witness.Other+extension]...)
		}), badFor(all+1, 0)},
	}
}

// newerAt expects a newer version in the line of seq.
func newerAt(seq int) func(*fixture) outcome {
	return func(p *fixture) outcome {
		return outcome{kind: newer, forward: seq - 1, backward: all - seq, at: p.start[seq-1]}
	}
}

// lettered returns the seq of a line before the last append whose crc has a letter.
func (p *fixture) lettered() int {
	return 1 + slices.IndexFunc(p.lines, func(l []byte) bool { return bytes.ContainsAny(l[8:16], "abcdef") })
}

// reordered moves the crc to the end of a line.
func reordered(l []byte) []byte {
	return slices.Concat([]byte("{"), l[18:len(l)-2], []byte(","), l[1:17], []byte("}\n"))
}

func TestCorruption(t *testing.T) {
	p := newFixture(t)
	for _, row := range corruptions() {
		t.Run(row.name, func(t *testing.T) {
			p := *p
			p.TB = t
			p.restore()
			damaged := row.edit(&p)
			if bytes.Equal(damaged, p.main) {
				t.Fatal("nothing was damaged")
			}
			p.damage(damaged)
			want := row.want(&p)
			f := p.examine(witness.Main)
			p.check(f, witness.Main, want)
			now, err := os.ReadFile(p.path(witness.Main))
			must(t, err)
			if f.Append != nil && !bytes.Equal(now, damaged) {
				t.Error("the refused append changed the file")
			}
		})
	}
}

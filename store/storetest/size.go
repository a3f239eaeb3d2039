package storetest

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
)

var sizeCases = []testCase{
	{
		name:        "fifty megabytes",
		explanation: "A body of 50 MB is spilled, and read back equal.",
		needs:       []Need{Blobs},
		run:         testSizeHuge,
	},
	{
		name:        "equal bodies",
		explanation: "Equal bodies are kept once, however often and in however many sessions they are appended.",
		needs:       []Need{Blobs},
		run: func(t *env) {
			body := `"` + text("0123456789", 300<<10) + `"`
			for _, session := range []string{"a", "a", "b"} {
				t.append(t.log(), session, eventlog.Any(), newEvent("test:big", body))
			}
			t.same("data is equal", true, string(t.read(t.reopen(), "b", eventlog.All())[0].Data) == body)
			t.same("sizes of the blobs", []int64{int64(len(body))}, t.sizesOfBlobs(t.log()))
		},
	},
	{
		name:        "threshold",
		explanation: "Data over the threshold is spilled and data at it is not; the hash chain does not care; readers see no difference.",
		needs:       []Need{Blobs},
		run:         testSizeThreshold,
	},
	{
		name:        "an append over 4 MiB",
		explanation: "An append whose lines would exceed 4 MiB spills its largest bodies, even where spilling is turned off.",
		needs:       []Need{Blobs},
		run:         testSizeAppend,
	},
	{
		name:        "an append that cannot shrink",
		explanation: "An append whose lines exceed 4 MiB although nothing is left to spill is refused, and nothing is written.",
		run: func(t *env) {
			events := notes(90)
			for i := range events {
				events[i].Metadata = jsontext.Value(`{"k":"` + text("m", 60<<10) + `"}`)
			}
			t.refused(event.ErrInvalidSize, t.log(), "a", eventlog.New(), events...)
			t.missing(t.log(), "a")
		},
	},
	{
		name:        "metadata",
		explanation: "Metadata of 64 KiB is kept; more is refused.",
		run: func(t *env) {
			fits := `{"k":"` + text("m", 64<<10-len(`{"k":""}`)) + `"}`
			t.append(t.log(), "a", eventlog.New(), noted(1, fits))
			t.refused(event.ErrInvalidMetadata, t.log(), "a", eventlog.Any(), noted(1, fits[:9]+fits[8:]))
			t.same("metadata", fits, string(t.read(t.reopen(), "a", eventlog.All())[0].Metadata))
		},
	},
	{
		name:        "lines of every length",
		explanation: "Lines around the sizes of buffers and pages are read back equal, forward and backward.",
		run:         testSizeLines,
	},
	{
		name:        "long appends",
		explanation: "Thousands of events in one append are atomic and stay so.",
		run: func(t *env) {
			t.append(t.log(), "a", eventlog.New(), notes(5000)...)
			got := t.read(t.reopen(), "a", eventlog.All())
			t.same("events", 5000, len(got))
			t.same("more of the first", 4999, got[0].More())
			t.sound(t.log(), "a")
		},
	},
}

// sizesOfBlobs lists the sizes of all blobs.
func (t *env) sizesOfBlobs(l *eventlog.Log) []int64 {
	t.Helper()
	infos, err := collect(ability[eventlog.Blobs](t, l.Store()).ListBlobs(t.ctx))
	t.must(err)
	sizes := []int64{}
	for _, info := range infos {
		sizes = append(sizes, info.Bytes)
	}
	return sizes
}

func testSizeHuge(t *env) {
	const size = 50 << 20
	body := bytes.Repeat([]byte("x"), size)
	copy(body[size/2:], "in the middle")
	body[0], body[size-1] = '"', '"'
	t.append(t.log(), "a", eventlog.New(), newEvent("test:big", string(body)))
	l := t.reopen()
	e := t.read(l, "a", eventlog.All())[0]
	t.same("data is equal", true, bytes.Equal(e.Data, body))
	t.same("the line is short", true, len(e.Line()) < 1000)
	t.same("sizes of the blobs", []int64{size}, t.sizesOfBlobs(l))
}

func testSizeThreshold(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: 100})
	for n := range 5 {
		data := `"` + text("x", 96+n) + `"` // 98…102 bytes
		t.append(l, "a", eventlog.Any(), newEvent("test:note", data))
	}
	for _, l := range []*eventlog.Log{l, t.log()} {
		for i, e := range t.read(l, "a", eventlog.All()) {
			_, size, spilled := e.Spilled()
			t.same("spilled", i > 2, spilled)
			t.same("data", `"`+text("x", 96+i)+`"`, string(e.Data))
			if spilled {
				t.same("bytes", int64(98+i), size)
				t.same("blobs", []event.Digest{event.DigestOf(e.Data)}, e.Blobs())
			}
		}
		t.sound(l, "a")
	}
}

func testSizeAppend(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: -1})
	events := make([]event.Event, 7)
	for i := range events {
		events[i] = newEvent("test:note", `"`+text(string(rune('a'+i)), 900<<10+i)+`"`)
	}
	t.append(l, "a", eventlog.New(), events...)
	t.append(l, "b", eventlog.New(), events[0])
	size := 0
	for i, e := range t.read(t.reopen(), "a", eventlog.All()) {
		size += len(e.Line()) + 1
		t.same("data is equal", true, bytes.Equal(e.Data, events[i].Data))
		_, _, spilled := e.Spilled()
		t.same("the largest are spilled", i >= 4, spilled)
	}
	t.same("the lines fit", true, size <= 4<<20)
	_, _, spilled := ptr(t.read(t.log(), "b", eventlog.All())[0]).Spilled()
	t.same("one body that fits is spilled", false, spilled)
	t.sound(t.log(), "a")
}

func ptr[T any](v T) *T { return &v }

func testSizeLines(t *env) {
	l := t.over(t.store(), eventlog.Options{SpillOver: -1})
	var want []string
	for _, around := range []int{512, 4096, 8192, 32 << 10, 64 << 10, 128 << 10} {
		for _, n := range []int{-700, -340, -2, -1, 0, 1, 2} {
			data := `"` + text("0123456789", max(around+n, 1)) + `"`
			want = append(want, data)
			t.append(l, "a", eventlog.Any(), newEvent("test:note", data))
		}
	}
	l = t.reopen()
	for i, e := range t.read(l, "a", eventlog.All()) {
		t.same("data", want[i], string(e.Data))
	}
	for i, e := range t.read(l, "a", eventlog.All().Backward()) {
		t.same("data backward", want[len(want)-1-i], string(e.Data))
	}
}

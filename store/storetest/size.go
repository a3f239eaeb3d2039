package storetest

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/suite"
	"github.com/convlog/convlog/internal/testsize"
	"github.com/convlog/convlog/upkeep/transfer"
)

var sizeCases = []testCase{
	{
		Name:        "megabytes",
		Explanation: "Data of many megabytes is spilled, and a read returns the same bytes.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testSizeHuge,
	},
	{
		Name:        "equal bodies",
		Explanation: "Equal spilled data is stored once, for all appends and sessions.",
		Needs:       []suite.Need{suite.Blobs},
		Run: func(t *env) {
			body := `"` + suite.Text("0123456789", 300<<10) + `"`
			for _, session := range []string{"a", "a", "b"} {
				t.Append(t.Main(), session, eventlog.Any(), suite.NewEvent("test:big", body))
			}
			t.WantEqual("data is equal", true, string(t.Read(t.Reopen(), "b", eventlog.All())[0].Data) == body)
			t.WantEqual("sizes of the blobs", []int64{int64(len(body))}, t.sizesOfBlobs(t.Main()))
		},
	},
	{
		Name:        "threshold",
		Explanation: "Data over the threshold is spilled; data at the threshold is not. The hash chain and readers see no difference.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testSizeThreshold,
	},
	{
		Name:        "an append over 4 MiB",
		Explanation: "An append with lines over 4 MiB, or over the limit of the store, spills its largest data, even if spilling is turned off.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testSizeAppend,
	},
	{
		Name:        "a store with a limit",
		Explanation: "Limiter: the log spills data and forms batches by the limit of the store. An append that does not fit is rejected.",
		Needs:       []suite.Need{suite.Blobs},
		Run:         testSizeLimit,
	},
	{
		Name:        "an append that is too large",
		Explanation: "An append with lines over 4 MiB and no data to spill is rejected, and nothing is written.",
		Run: func(t *env) {
			events := suite.Notes(90)
			for i := range events {
				events[i].Metadata = jsontext.Value(`{"k":"` + suite.Text("m", 60<<10) + `"}`)
			}
			t.WantAppendError(event.ErrInvalidSize, t.Main(), "a", eventlog.New(), events...)
			t.WantMissing(t.Main(), "a")
		},
	},
	{
		Name:        "metadata",
		Explanation: "Metadata of 64 KiB is stored. Larger metadata is rejected.",
		Run: func(t *env) {
			fits := `{"k":"` + suite.Text("m", 64<<10-len(`{"k":""}`)) + `"}`
			t.Append(t.Main(), "a", eventlog.New(), suite.NoteWithMetadata(1, fits))
			t.WantAppendError(event.Rule("metadata"), t.Main(), "a", eventlog.Any(), suite.NoteWithMetadata(1, fits[:9]+fits[8:]))
			t.WantEqual("metadata", fits, string(t.Read(t.Reopen(), "a", eventlog.All())[0].Metadata))
		},
	},
	{
		Name:        "lines of every length",
		Explanation: "Lines with lengths near the sizes of buffers and pages are read without changes, forward and backward.",
		Run:         testSizeLines,
	},
	{
		Name:        "long appends",
		Explanation: "An append of thousands of events is atomic, also after a reopen.",
		Run: func(t *env) {
			n := int(testsize.Pick[int64](1000, 2000, 5000) * int64(t.mostBytes()) / eventlogMost) // 32 bits hold no product
			t.Append(t.Main(), "a", eventlog.New(), suite.Notes(n)...)
			got := t.Read(t.Reopen(), "a", eventlog.All())
			t.WantEqual("events", n, len(got))
			t.WantEqual("events after the first", n-1, got[0].More())
			t.WantVerified(t.Main(), "a")
		},
	},
}

// eventlogMost is the size of the largest append of a log.
const eventlogMost = 4 << 20

// mostBytes is the size of the largest append of a log over the store.
func (t *env) mostBytes() int {
	limiter, ok := eventlog.As[eventlog.Limiter](t.Store())
	if !ok {
		return eventlogMost
	}
	most, err := limiter.MaxAppend(t.Ctx)
	t.Must(err)
	return min(most, eventlogMost)
}

// sizesOfBlobs lists the sizes of all blobs.
func (t *env) sizesOfBlobs(l *eventlog.Log) []int64 {
	t.Helper()
	infos, err := suite.Collect(suite.Ability[eventlog.Blobs](t, l.Store()).ListBlobs(t.Ctx))
	t.Must(err)
	sizes := []int64{}
	for _, info := range infos {
		sizes = append(sizes, info.Bytes)
	}
	return sizes
}

func testSizeHuge(t *env) {
	size := testsize.Pick(1, 5, 50) << 20
	body := bytes.Repeat([]byte("x"), size)
	copy(body[size/2:], "in the middle")
	body[0], body[size-1] = '"', '"'
	t.Append(t.Main(), "a", eventlog.New(), suite.NewEvent("test:big", string(body)))
	l := t.Reopen()
	e := t.Read(l, "a", eventlog.All())[0]
	t.WantEqual("data is equal", true, bytes.Equal(e.Data, body))
	t.WantEqual("the line is short", true, len(e.Line()) < 1000)
	t.WantEqual("sizes of the blobs", []int64{int64(size)}, t.sizesOfBlobs(l))
}

func testSizeThreshold(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: 100})
	for n := range 5 {
		data := `"` + suite.Text("x", 96+n) + `"` // 98…102 bytes
		t.Append(l, "a", eventlog.Any(), suite.NewEvent("test:note", data))
	}
	for _, l := range []*eventlog.Log{l, t.Main()} {
		for i, e := range t.Read(l, "a", eventlog.All()) {
			_, size, spilled := e.Spilled()
			t.WantEqual("spilled", i > 2, spilled)
			t.WantEqual("data", `"`+suite.Text("x", 96+i)+`"`, string(e.Data))
			if spilled {
				t.WantEqual("bytes", int64(98+i), size)
				t.WantEqual("blobs", []event.Digest{event.DigestOf(e.Data)}, e.Blobs())
			}
		}
		t.WantVerified(l, "a")
	}
}

func testSizeAppend(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: -1})
	events, most := make([]event.Event, 7), t.mostBytes()
	for i := range events {
		events[i] = suite.NewEvent("test:note", `"`+suite.Text(string(rune('a'+i)), 900*(most>>12)+i)+`"`)
	}
	t.Append(l, "a", eventlog.New(), events...)
	t.Append(l, "b", eventlog.New(), events[0])
	size := 0
	for i, e := range t.Read(t.Reopen(), "a", eventlog.All()) {
		size += len(e.Line()) + 1
		t.WantEqual("data is equal", true, bytes.Equal(e.Data, events[i].Data))
		_, _, spilled := e.Spilled()
		t.WantEqual("the largest are spilled", i >= 4, spilled)
	}
	t.WantEqual("the lines fit", true, size <= most)
	_, _, spilled := suite.Ptr(t.Read(t.Main(), "b", eventlog.All())[0]).Spilled()
	t.WantEqual("one body that fits is spilled", false, spilled)
	t.WantVerified(t.Main(), "a")
}

func testSizeLimit(t *env) {
	const limit = 20 << 10
	l := t.LogOver(suite.LimitedStore{Store: t.Store(), Max: limit})
	data := func(i int) string { return `"` + suite.Text(string(rune('a'+i)), 6<<10) + `"` }
	var events []event.Event
	for i := range 5 {
		events = append(events, suite.NewEvent("test:note", data(i)))
	}
	t.Append(l, "a", eventlog.New(), events...)
	for i, e := range t.Read(t.Main(), "a", eventlog.All()) {
		t.WantEqual("data", data(i), string(e.Data))
	}
	errs := suite.Concurrently(racers, func(i int) error {
		_, err := l.Append(t.Ctx, "b", eventlog.Any(), suite.NewEvent("test:note", data(i)))
		return err
	})
	t.Must(errors.Join(errs...))
	t.WantEqual("events of concurrent appends", racers, len(t.Read(l, "b", eventlog.All())))
	t.WantAppendError(event.ErrInvalidSize, l, "c", eventlog.New(), suite.NoteWithMetadata(1, `{"k":"`+suite.Text("m", limit)+`"}`))

	other, err := t.Opener(t).Open()
	t.Must(err)
	source := t.OtherLog(other)
	t.Append(source, "d", eventlog.New(), events...)
	_, err = transfer.Adopt(t.Ctx, l, "d", source.Read(t.Ctx, "d", eventlog.All()))
	t.Must(err)
	for i, e := range t.Read(t.Main(), "d", eventlog.All()) {
		t.WantEqual("adopted data", data(i), string(e.Data))
	}
}

func testSizeLines(t *env) {
	l := t.LogOver(t.Store(), eventlog.Options{SpillOver: -1})
	var want []string
	for _, around := range []int{512, 4096, 8192, 32 << 10, 64 << 10, 128 << 10} {
		for _, n := range []int{-700, -340, -2, -1, 0, 1, 2} {
			data := `"` + suite.Text("0123456789", max(around+n, 1)) + `"`
			want = append(want, data)
			t.Append(l, "a", eventlog.Any(), suite.NewEvent("test:note", data))
		}
	}
	l = t.Reopen()
	for i, e := range t.Read(l, "a", eventlog.All()) {
		t.WantEqual("data", want[i], string(e.Data))
	}
	for i, e := range t.Read(l, "a", eventlog.All().Backward()) {
		t.WantEqual("data backward", want[len(want)-1-i], string(e.Data))
	}
}

package stats

import (
	"encoding/binary"
	"time"
	"unique"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/projection"
)

// rowBytes writes or reads the values of a row of the catalog, one after the other. The same
// methods do both, so that both have the same order. Lists decode many rows: these bytes are read
// ten times as fast as JSON.
type rowBytes struct {
	b      []byte
	reads  bool
	failed bool // the bytes end too early
}

func (r *rowBytes) fail() {
	r.failed, r.b = true, nil
}

func (r *rowBytes) int64(x *int64) {
	if !r.reads {
		r.b = binary.AppendVarint(r.b, *x)
		return
	}
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return
	}
	*x, r.b = v, r.b[n:]
}

func (r *rowBytes) int(x *int) {
	v := int64(*x)
	r.int64(&v)
	*x = int(v)
}

func (r *rowBytes) bool(x *bool) {
	var v int
	if *x {
		v = 1
	}
	r.int(&v)
	*x = v == 1
}

// field returns the bytes of the next text, which are the writer's or alias the row.
func (r *rowBytes) field(x []byte) []byte {
	if !r.reads {
		r.b = append(binary.AppendUvarint(r.b, uint64(len(x))), x...)
		return x
	}
	size, n := binary.Uvarint(r.b)
	if n <= 0 || size > uint64(len(r.b)-n) {
		r.fail()
		return nil
	}
	end := n + int(size)
	x, r.b = r.b[n:end:end], r.b[end:]
	if len(x) == 0 {
		return nil
	}
	return x
}

func (r *rowBytes) text(x *string) {
	if !r.reads {
		r.b = append(binary.AppendUvarint(r.b, uint64(len(*x))), *x...)
		return
	}
	*x = string(r.field(nil))
}

func (r *rowBytes) head(x *event.Head) {
	r.int64(&x.Seq)
	if !r.reads {
		r.b = append(r.b, x.Hash[:]...)
		return
	}
	if len(r.b) < len(x.Hash) {
		r.fail()
		return
	}
	r.b = r.b[copy(x.Hash[:], r.b):]
}

func (r *rowBytes) time(x *time.Time) {
	sec, nano := x.Unix(), int64(x.Nanosecond())
	r.int64(&sec)
	r.int64(&nano)
	if r.reads {
		*x = time.Unix(sec, nano).UTC()
	}
}

// name is text for a text that many rows have: the rows share it in memory.
func (r *rowBytes) name(x *string) {
	if r.text(x); r.reads {
		*x = unique.Make(*x).Value()
	}
}

// entries writes or reads a map whose values value writes or reads. An empty map is read as nil.
func entries[T any](r *rowBytes, m *map[string]T, value func(*T)) {
	n := len(*m)
	r.int(&n)
	if !r.reads {
		for name, v := range *m {
			r.name(&name)
			value(&v)
		}
		return
	}
	*m = nil
	if n <= 0 || n > len(r.b) {
		return
	}
	*m = make(map[string]T, n)
	for ; n > 0 && !r.failed; n-- {
		var name string
		var v T
		r.name(&name)
		value(&v)
		(*m)[name] = v
	}
}

func (r *rowBytes) spend(x *projection.Spend) {
	u := &x.Usage
	for _, n := range []*int64{(*int64)(&x.Cost), (*int64)(&x.Estimate), &u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens, &u.ReasoningTokens} {
		r.int64(n)
	}
	for _, n := range []*int{&x.Responses, &x.Unpriced, &x.Unknown, &x.Estimated} {
		r.int(n)
	}
}

func (r *rowBytes) tally(x *Tally) {
	r.int(&x.Sessions)
	for _, n := range []*int64{&x.Events, &x.Turns, &x.Messages, &x.Calls, &x.WorkMS, &x.WaitMS, (*int64)(&x.Reported)} {
		r.int64(n)
	}
	r.spend(&x.Spend)
}

func (r *rowBytes) tool(x *ToolTally) {
	r.int64(&x.Calls)
	r.int64(&x.Failed)
	r.int(&x.Sessions)
}

// summary has all of a Summary but its hours, which no row has, and its error.
func (r *rowBytes) summary(x *Summary) {
	r.tally(&x.Total)
	entries(r, &x.BySource, r.tally)
	entries(r, &x.ByDay, r.tally)
	entries(r, &x.ByModel, r.spend)
	entries(r, &x.ByTool, r.tool)
	for _, text := range []*string{&x.Title, &x.Input, &x.Source, &x.Agent, &x.CWD} {
		r.text(text)
	}
	r.int64(&x.Moves)
	r.int64(&x.Orphaned)
	r.bool(&x.HasRuns)
	r.time(&x.First)
	r.time(&x.Last)
}

// listed has all of a listedRow but its head.
func (r *rowBytes) listed(x *listedRow) {
	at := int64(x.At)
	r.int64(&at)
	x.At = uint64(at)
	r.time(&x.Last)
	r.int64(&x.Bytes)
	r.text(&x.Name)
	r.bool(&x.Named)
	described := x.First != nil
	if r.bool(&described); !described {
		return
	}
	if x.First == nil {
		x.First = new(listedEvent)
	}
	first := x.First
	r.int64(&first.Seq)
	kind := string(first.Type)
	r.text(&kind)
	first.Type = event.Type(kind)
	r.time(&first.Time)
	first.Metadata = r.field(first.Metadata)
	first.Data = r.field(first.Data)
}

package cline

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/event"
	"github.com/convlog/convlog/interop/internal/document"
	"github.com/convlog/convlog/interop/internal/parts"
	"github.com/convlog/convlog/interop/internal/records"
)

// truncation is the strategy of a compaction that leaves messages out.
const truncation = "truncation"

// deleted is a range of the history that Cline does not send any more: the indexes of the
// first and the last message.
type deleted [2]int

// leaveOut adds a compaction with the range that is deleted before the message at an index.
// A range grows: the compaction replaces the one before.
func (b *builder) leaveOut(rec *records.Record, index int) {
	d, ok := b.facts.deleted[index]
	if !ok || d[0] < 0 || d[0] > d[1] || d[1] >= index {
		return
	}
	var messages []int
	for i := d[0]; i <= d[1]; i++ {
		messages = append(messages, i)
	}
	text := fmt.Sprintf("[%d,%d]", d[0], d[1])
	b.addTruncation(document.Item{
		Rec: document.Subrecord(rec, jsontext.Value(text)), Partial: true, Kind: "deleted_range",
		Key: event.DigestOf([]byte("deleted range\n" + text)), Renews: true,
	}, messages, "")
}

// addMarker adds the marker of a truncation by Roo Code: the model sees the marker in place of the
// messages that name it.
func (b *builder) addMarker(rec *records.Record, o *parts.Members, id string, blocks []jsontext.Value) error {
	var m event.Message
	for _, v := range blocks {
		p, err := b.reader.Block(v)
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, p)
	}
	b.addTruncation(document.Item{
		Rec: *rec, At: milli(timeOf(o)), Kind: "truncation", Key: event.DigestOf([]byte("truncation\n" + id)),
	}, b.hidden[id], m.Text())
	return nil
}

// addTruncation adds a compaction that leaves out messages. A result is left out with its
// call, and kept with its call.
func (b *builder) addTruncation(it document.Item, messages []int, summary string) {
	left, calls := map[int]bool{}, map[string]bool{}
	for _, i := range messages {
		for k := b.starts[i]; k < b.end(i); k++ {
			left[k] = true
			for _, call := range messageOf(&b.items[k]).ToolCalls() {
				calls[call.CallID] = true
			}
		}
	}
	it.Aside, it.Drops = true, []int{}
	for k := range b.items {
		drop := left[k]
		for _, r := range messageOf(&b.items[k]).ToolResults() {
			drop = calls[r.CallID]
		}
		if drop {
			it.Drops = append(it.Drops, k)
		}
	}
	it.Payload = event.Compaction{Strategy: truncation, Trigger: "auto", Summary: summary}
	b.items = append(b.items, it)
}

// end is the index after the last item of a message.
func (b *builder) end(message int) int {
	if message+1 < len(b.starts) {
		return b.starts[message+1]
	}
	return len(b.items)
}

// messageOf is the message of an item; zero if it has another payload.
func messageOf(it *document.Item) event.Message {
	m, _ := it.Payload.(event.Message)
	return m
}

package term

import (
	"encoding/binary"
	"slices"
)

// packedRows are the rows of a long table, as bytes: each cell after its length.
type packedRows struct {
	chunks  [][]byte
	columns int   // of the rows that were added
	removed []int // the columns that were removed since, each by its place then
}

// packedChunk is the size of a chunk.
const packedChunk = 256 << 10

func (r *packedRows) add(row []string) {
	r.columns = len(row)
	size := 0
	for _, cell := range row {
		size += binary.MaxVarintLen32 + len(cell)
	}
	last := len(r.chunks) - 1
	if last < 0 || len(r.chunks[last])+size > cap(r.chunks[last]) {
		r.chunks = append(r.chunks, make([]byte, 0, max(packedChunk, size)))
		last++
	}
	for _, cell := range row {
		r.chunks[last] = append(binary.AppendUvarint(r.chunks[last], uint64(len(cell))), cell...)
	}
}

// remove leaves out a column.
func (r *packedRows) remove(column int) { r.removed = append(r.removed, column) }

// all calls yield with each row, until yield returns false. The row is reused.
func (r *packedRows) all(yield func([]string) bool) {
	row := make([]string, 0, r.columns)
	for _, chunk := range r.chunks {
		for len(chunk) > 0 {
			row = row[:0]
			for range r.columns {
				size, n := binary.Uvarint(chunk)
				end := n + int(size)
				row = append(row, string(chunk[n:end]))
				chunk = chunk[end:]
			}
			for _, column := range r.removed {
				row = slices.Delete(row, column, column+1)
			}
			if !yield(row) {
				return
			}
		}
	}
}

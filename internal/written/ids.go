package written

import (
	"fmt"

	"github.com/google/uuid"
)

// IDs makes the ids of the records of a file, in the form of UUIDs of version 4. Equal files
// have equal ids.
type IDs struct {
	space uuid.UUID
	// Seqs are the seqs that Next got: see File.
	Seqs []int64
}

// NewIDs makes ids for a session.
func NewIDs(session string) *IDs {
	return &IDs{space: uuid.NewSHA1(uuid.NameSpaceOID, []byte(session))}
}

// Next is the id of the next record. seq is the seq of the last event that the record has; 0
// if the record has none.
func (x *IDs) Next(seq int64) string {
	if n := len(x.Seqs); seq == 0 && n > 0 {
		seq = x.Seqs[n-1]
	}
	x.Seqs = append(x.Seqs, seq)
	return x.id(len(x.Seqs))
}

func (x *IDs) id(n int) string {
	id := uuid.NewSHA1(x.space, fmt.Append(nil, n))
	id[6] = id[6]&0x0f | 0x40
	return id.String()
}

// Records are the seqs of the events that the records of the file have, by the ids of the
// records. session is the session that the file begins.
func (f *File) Records(session string) map[string]int64 {
	ids, all := NewIDs(session), make(map[string]int64, len(f.Seqs))
	for i, seq := range f.Seqs {
		all[ids.id(i+1)] = seq
	}
	return all
}

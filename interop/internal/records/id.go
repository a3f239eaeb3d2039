package records

import "crypto/sha256"

// An ID stands for an id of a source in memory: a part of its SHA-256. An import keeps the ids of
// all records of a file.
type ID [16]byte

// IDOf returns the ID of an id.
func IDOf(id string) ID {
	sum := sha256.Sum256([]byte(id))
	return ID(sum[:])
}

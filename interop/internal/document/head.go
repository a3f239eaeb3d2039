package document

import "github.com/convlog/convlog/interop/internal/head"

// Head is the beginning of a value.
type Head = head.Head

// Begins reads the beginning of a file.
func Begins(b []byte) Head { return head.Begins(b) }

// IsArray reports whether a file begins an array.
func IsArray(b []byte) bool { return head.IsArray(b) }

package importrun

import "context"

// CursorStore is a store that keeps the cursors of imports: what the last import knew of each
// source file, so that the next import does not read a file that has not changed. The cursors
// are derived and may get lost. A rewrite or a removal of any session erases them.
type CursorStore interface {
	// ImportCursors returns the stored cursors; nil if there are none.
	ImportCursors(ctx context.Context) ([]byte, error)
	// PutImportCursors replaces the stored cursors. The caller holds the store lock.
	PutImportCursors(ctx context.Context, cursors []byte) error
}

// Scope says which files the import of a file may read.
type Scope int8

// The scopes of imports.
const (
	AnyFile   Scope = iota // also files in other folders
	OwnFolder              // the file, and files in its folder and below
	OwnFile                // the file only
)

// Scoped is a format whose imports read the files of a scope only.
type Scoped interface{ Scope() Scope }

package written

// Restored is the file of a session that restore makes again.
type Restored struct {
	// Path is the place of the file below the folder of its program, with slashes; empty if
	// the session has no file.
	Path string
	Body []byte
	// Records is the number of records. Same of them have the bytes of the imported file,
	// Shared of them come from the session that this one is a fork of, and Erased of them are
	// erased. The others have the same values in other bytes: an import of the file adds them
	// again, or fails.
	Records, Same, Shared, Erased int
}

// Package crashfs simulates a disk that can lose power, for tests of crash safety. A
// store uses it as a jsonl.FS:
//
//	disk := crashfs.New()
//	log := eventlog.Open(jsonl.New("store", jsonl.Options{FS: disk.Mount()}))
//
// Each Mount is a process. Processes share the names, the bytes and the advisory locks
// of the disk. Each change is a numbered operation: OnOp observes it, and SetFault can
// make it fail.
//
// # State after a crash
//
// Clone is the disk after the death of all processes: all changes are there, synced or
// not. Crash is the disk after a loss of power: synced changes are there, and the seed
// chooses which others are.
//
// Content: a file has the bytes of its last sync and the changes since. After a crash
// its size is the size at some moment since the sync. Each of its blocks, of 512 or
// 4,096 bytes, has the bytes of its own moment. So later blocks may survive without
// earlier ones, which read as NULs. A file may have grown without its bytes, and a
// truncation may be undone or half done.
//
// Names: syncing a file does not sync its name. Syncing a directory keeps all changes
// of names in it, if the directory itself is kept. Each other creation, removal and
// rename is kept or undone independently; changes of the same name stay in order. A
// rename is one change, also across directories. This is looser than ext4, whose
// journal keeps a prefix of all changes. It is not looser than btrfs and f2fs, which
// may write the names of a synced file before other names. A kept name may belong to a
// file whose bytes are lost.
//
// Assumptions: a synced block never changes, and a block is not written in part.
package crashfs

// Package crashfs is a disk in memory that can lose power, for tests of what
// must survive that. Stores reach it as a jsonl.FS:
//
//	disk := crashfs.New()
//	log := eventlog.Open(jsonl.New("store", jsonl.Options{FS: disk.Mount()}))
//
// Each Mount is a process. Processes share the names, the bytes and the
// advisory locks of the disk. Everything they change is a numbered operation:
// OnOp sees each one when it is done, and SetFault can make it fail.
//
// # What a crash leaves
//
// Clone is the end of all processes: what was done is there, synced or not.
// Crash is the end of power: what was synced is there, and of the rest a share
// that the seed chooses.
//
// Content. A file has its bytes as of its last sync and the changes since. Its
// size after the crash is that of some moment since then, and each of its
// blocks, of 512 or of 4,096 bytes, has its bytes of some moment of its own.
// So later blocks may be there without earlier ones, which read as NULs, a
// file may have grown without its bytes, and a truncation may be undone or
// half done.
//
// Names. Syncing a file says nothing of its name. Syncing a directory keeps
// every change of names in it, if the directory itself is kept. Of the other
// creations, removals and renames each is kept or undone by itself; only those
// that touch the same name stay in order, and a rename is one change, across
// directories too. That is looser than ext4, whose journal keeps a prefix of
// all changes, and no looser than what btrfs and f2fs may do, which write the
// names of a synced file ahead of other names. A name that is kept may belong
// to a file whose bytes are not.
//
// What is assumed of a disk: a block that was synced stays as it is, and a
// block is not written in part.
package crashfs

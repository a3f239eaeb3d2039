package crashfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/convlog/convlog/internal/crashfs"
	"github.com/convlog/convlog/store/jsonl"
)

// mount returns a disk with a directory, and a process.
func mount(t *testing.T) (*crashfs.Disk, *crashfs.FS) {
	t.Helper()
	disk := crashfs.New()
	process := disk.Mount()
	must(t, process.MakeRoot())
	return disk, process
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, process *crashfs.FS, name string, flag int) jsonl.File {
	t.Helper()
	file, err := process.Open(name, flag)
	must(t, err)
	return file
}

// createSynced returns an open file with content b. The content and the name are
// synced.
func createSynced(t *testing.T, process *crashfs.FS, name string, b []byte) jsonl.File {
	t.Helper()
	file := open(t, process, name, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	write(t, file, b)
	must(t, file.Sync())
	must(t, process.SyncDir("."))
	return file
}

func write(t *testing.T, file jsonl.File, b []byte) {
	t.Helper()
	if n, err := file.Write(b); n != len(b) || err != nil {
		t.Fatalf("wrote %d of %d bytes: %v", n, len(b), err)
	}
}

// outcomes returns the different states after many crashes, as described by describe.
func outcomes(disk *crashfs.Disk, describe func(files map[string][]byte) string) map[string]bool {
	found := map[string]bool{}
	for seed := range uint64(500) {
		found[describe(disk.Crash(seed).Files())] = true
	}
	return found
}

func wantOutcomes(t *testing.T, got map[string]bool, want ...string) {
	t.Helper()
	for _, one := range want {
		if !got[one] {
			t.Errorf("no crash leaves %q", one)
		}
		delete(got, one)
	}
	for one := range got {
		t.Errorf("a crash leaves %q", one)
	}
}

func TestSyncedContentIsKept(t *testing.T) {
	disk, process := mount(t)
	file := createSynced(t, process, "a", []byte("kept"))
	for seed := range uint64(100) {
		if got := disk.Crash(seed).Files()["a"]; string(got) != "kept" {
			t.Fatalf("seed %d leaves %q", seed, got)
		}
	}
	write(t, file, []byte(" and more"))
	wantOutcomes(t, outcomes(disk, func(files map[string][]byte) string { return string(files["a"]) }),
		"kept", "kept and more", "kept"+strings.Repeat("\x00", 9))
	must(t, file.Sync())
	wantOutcomes(t, outcomes(disk, func(files map[string][]byte) string { return string(files["a"]) }), "kept and more")
}

// Each block survives or is lost independently.
func TestLostBlocks(t *testing.T) {
	disk, process := mount(t)
	file := createSynced(t, process, "a", nil)
	for _, c := range "12345678" {
		write(t, file, bytes.Repeat([]byte{byte(c)}, 512))
	}
	found := outcomes(disk, func(files map[string][]byte) string {
		b := files["a"]
		if len(b)%512 != 0 {
			t.Errorf("%d bytes are left, of whole blocks", len(b))
		}
		var blocks strings.Builder
		for ; len(b) > 0; b = b[512:] {
			if b[0] != b[511] {
				t.Error("a block was written in part")
			}
			blocks.WriteString(strings.Trim(fmt.Sprintf("%q", b[0]), "'"))
		}
		return blocks.String()
	})
	for _, want := range []string{"", "12345678", "123", `123\x005678`, `1234\x00\x00\x00\x00`, `\x00\x00\x00\x00\x00\x00\x00\x00`} {
		if !found[want] {
			t.Errorf("no crash leaves %q", want)
		}
	}
}

func TestUnsyncedTruncation(t *testing.T) {
	disk, process := mount(t)
	file := createSynced(t, process, "a", []byte("12345678"))
	must(t, file.Truncate(2))
	wantOutcomes(t, outcomes(disk, func(files map[string][]byte) string { return string(files["a"]) }),
		"12", "12345678", "12"+strings.Repeat("\x00", 6))
}

func TestNames(t *testing.T) {
	disk, process := mount(t)
	createSynced(t, process, "old", []byte("1"))
	must(t, process.Rename("old", "new"))
	must(t, open(t, process, "fresh", os.O_WRONLY|os.O_CREATE).Sync())
	list := func(files map[string][]byte) string {
		var names []string
		for _, name := range []string{"fresh", "new", "old"} {
			if _, ok := files[name]; ok {
				names = append(names, name)
			}
		}
		return strings.Join(names, " ")
	}
	wantOutcomes(t, outcomes(disk, list), "old", "new", "fresh old", "fresh new")
	must(t, process.Remove("new"))
	wantOutcomes(t, outcomes(disk, list), "old", "new", "", "fresh old", "fresh new", "fresh")
	must(t, process.SyncDir("."))
	wantOutcomes(t, outcomes(disk, list), "fresh")
}

// A file that was renamed before it was synced may exist without its bytes.
func TestRenamedBeforeItWasSynced(t *testing.T) {
	disk, process := mount(t)
	createSynced(t, process, "a", []byte("old"))
	write(t, open(t, process, "a.tmp", os.O_WRONLY|os.O_CREATE), []byte("fresh"))
	must(t, process.Rename("a.tmp", "a"))
	must(t, process.SyncDir("."))
	wantOutcomes(t, outcomes(disk, func(files map[string][]byte) string { return string(files["a"]) }),
		"fresh", "", "\x00\x00\x00\x00\x00")
}

// A name survives only if its directory survives.
func TestNamesInANewDirectory(t *testing.T) {
	disk, process := mount(t)
	createSynced(t, process, "a", []byte("1"))
	must(t, process.Mkdir("dir"))
	must(t, process.Rename("a", "dir/a"))
	must(t, process.SyncDir("dir"))
	where := func(files map[string][]byte) string { return fmt.Sprint(len(files["a"]), len(files["dir/a"])) }
	wantOutcomes(t, outcomes(disk, where), "1 0", "0 1")
	must(t, process.SyncDir("."))
	wantOutcomes(t, outcomes(disk, where), "0 1")
}

// Clone keeps unsynced changes, and they can still be lost in a crash.
func TestClone(t *testing.T) {
	disk, process := mount(t)
	file := createSynced(t, process, "a", []byte("kept"))
	write(t, file, []byte(" more"))
	if ok, err := file.TryLock(true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	clone := disk.Clone()
	write(t, file, []byte(" and more"))
	if got := clone.Files()["a"]; string(got) != "kept more" {
		t.Errorf("the clone has %q", got)
	}
	if ok, err := open(t, clone.Mount(), "a", os.O_RDONLY).TryLock(true); !ok || err != nil {
		t.Errorf("the clone is locked: %v", err)
	}
	wantOutcomes(t, outcomes(clone, func(files map[string][]byte) string { return string(files["a"]) }),
		"kept", "kept more", "kept"+strings.Repeat("\x00", 5))
}

func TestLocksAndProcesses(t *testing.T) {
	disk, one := mount(t)
	two := disk.Mount()
	a, b := createSynced(t, one, "a", nil), open(t, two, "a", os.O_RDWR)
	try := func(file jsonl.File, exclusive, want bool) {
		t.Helper()
		if ok, err := file.TryLock(exclusive); ok != want || err != nil {
			t.Errorf("lock taken is %v, want %v (%v)", ok, want, err)
		}
	}
	try(a, false, true)
	try(b, false, true)
	try(b, true, false)
	must(t, a.Unlock())
	try(b, true, true)
	try(a, false, false)
	two.Kill()
	try(a, true, true)
	if _, err := b.Write([]byte("x")); err == nil {
		t.Error("a killed process wrote")
	}
	if disk.Files()["a"] != nil {
		t.Error("bytes of a killed process are in the file")
	}
}

func TestFaults(t *testing.T) {
	disk, process := mount(t)
	file := createSynced(t, process, "a", []byte("kept"))
	disk.SetFault(crashfs.Full)
	n, err := file.Write([]byte("12345678"))
	if n != 4 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk stored %d bytes: %v", n, err)
	}
	if _, err := process.Open("b", os.O_CREATE); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a file was created on a full disk: %v", err)
	}
	disk.SetFault(func(op crashfs.Op) crashfs.Fault {
		return crashfs.Fault{Err: syscall.EIO, Done: op.Kind == "rename", Lost: op.Kind == "sync"}
	})
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if err := process.Rename("a", "b"); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	disk.SetFault(nil)
	must(t, file.Sync())
	must(t, process.SyncDir("."))
	if got := disk.Files()["b"]; string(got) != "kept1234" {
		t.Errorf("the file has %q", got)
	}
	if _, err := process.Stat("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Blocks that a failed sync lost stay lost, even if a later sync succeeds.
func TestLostBySync(t *testing.T) {
	lost := 0
	for n := range 20 {
		disk, process := mount(t)
		file := createSynced(t, process, "a", nil)
		write(t, file, bytes.Repeat([]byte{'x'}, 512*(n+1)))
		disk.SetFault(func(crashfs.Op) crashfs.Fault { return crashfs.Fault{Err: syscall.EIO, Lost: true} })
		if err := file.Sync(); err == nil {
			t.Fatal("the sync did not fail")
		}
		disk.SetFault(nil)
		must(t, file.Sync())
		if !bytes.Equal(disk.Files()["a"], bytes.Repeat([]byte{'x'}, 512*(n+1))) {
			t.Fatal("written bytes are not readable")
		}
		lost += bytes.Count(disk.Crash(0).Files()["a"], make([]byte, 512))
	}
	if lost == 0 {
		t.Error("no failed sync lost anything")
	}
}

func TestOperations(t *testing.T) {
	disk := crashfs.New()
	var ops []string
	disk.OnOp(func(op crashfs.Op, image func() *crashfs.Disk) {
		ops = append(ops, fmt.Sprintf("%d %s %s %d", op.N, op.Kind, op.Name, len(image().Files())))
	})
	process := disk.Mount()
	must(t, process.MakeRoot())
	file := createSynced(t, process, "a", []byte("1"))
	must(t, file.Truncate(0))
	must(t, process.Mkdir("dir"))
	must(t, process.Rename("a", "dir/a"))
	must(t, process.Remove("dir/a"))
	want := "1 makeroot . 0, 2 create a 1, 3 write a 1, 4 sync a 1, 5 syncdir . 1, 6 truncate a 1, 7 mkdir dir 1, 8 rename dir/a 1, 9 remove dir/a 0"
	if got := strings.Join(ops, ", "); got != want {
		t.Errorf("operations are\n%s\nwant\n%s", got, want)
	}
}

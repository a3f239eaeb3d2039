package notify

import (
	"bytes"
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// fileEvents are the reports about a file, folderEvents the reports about the folder.
const (
	fileEvents   = unix.IN_MODIFY | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	folderEvents = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
)

// WatchFolder calls changed, in a goroutine of its own, with the name of each file in
// the folder that is created, written, truncated, renamed or removed. The name "" means
// that any file may have changed. stop ends the goroutine. WatchFolder returns false if
// the system gives no reports.
//
// A report may be missing, for example if another machine writes to the folder.
func WatchFolder(path string, changed func(name string)) (stop func(), ok bool) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, false
	}
	reports := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, fileEvents|folderEvents|unix.IN_ONLYDIR); err != nil {
		_ = reports.Close()
		return nil, false
	}
	var running sync.WaitGroup
	running.Go(func() { passReports(reports, changed) })
	return func() {
		_ = reports.Close() // ends the read
		running.Wait()
	}, true
}

// passReports reads reports until the file is closed.
func passReports(reports *os.File, changed func(name string)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := reports.Read(buf)
		if err != nil {
			return
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			mask := binary.NativeEndian.Uint32(rest[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			name := string(bytes.TrimRight(rest[unix.SizeofInotifyEvent:end], "\x00"))
			rest = rest[end:]
			if name != "" || mask&(folderEvents|unix.IN_Q_OVERFLOW) != 0 {
				changed(name)
			}
		}
	}
}

package sysfile

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

// Stat returns the metadata of the file at path. It follows links.
func Stat(path string) (Info, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	const shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	// A folder can only be opened with FILE_FLAG_BACKUP_SEMANTICS.
	file, err := windows.CreateFile(name, windows.FILE_READ_ATTRIBUTES, shareAll, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	info, err := StatOpen(int(file))
	if closing := windows.CloseHandle(file); err == nil {
		err = closing
	}
	if err != nil {
		return Info{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return info, nil
}

// StatOpen returns the metadata of an open file.
func StatOpen(fd int) (Info, error) {
	var found windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(windows.Handle(fd), &found); err != nil {
		return Info{}, err
	}
	return Info{
		Size:       int64(found.FileSizeHigh)<<32 | int64(found.FileSizeLow),
		ModTime:    time.Unix(0, found.LastWriteTime.Nanoseconds()),
		ChangeTime: changeTime(fd),
		Inode:      uint64(found.FileIndexHigh)<<32 | uint64(found.FileIndexLow),
		Device:     uint64(found.VolumeSerialNumber),
		Links:      uint64(found.NumberOfLinks),
	}, nil
}

// changeTime is the change time of an open file; zero if the file system has none.
func changeTime(fd int) time.Time {
	info := make([]byte, 40) // FILE_BASIC_INFO: four times, the change time last, and the attributes
	err := windows.GetFileInformationByHandleEx(windows.Handle(fd), windows.FileBasicInfo, &info[0], uint32(len(info)))
	at := windows.Filetime{LowDateTime: binary.LittleEndian.Uint32(info[24:]), HighDateTime: binary.LittleEndian.Uint32(info[28:])}
	if err != nil || at == (windows.Filetime{}) {
		return time.Time{}
	}
	return time.Unix(0, at.Nanoseconds())
}

// CheckWritable returns an error if the file is read-only. It does not know of access control
// lists.
func CheckWritable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() && info.Mode()&0o200 == 0 {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrPermission}
	}
	return nil
}

// Owned reports whether the file belongs to the user of this process.
func Owned(path string) bool {
	file, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return false
	}
	owner, _, err := file.Owner()
	if err != nil {
		return false
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	return err == nil && owner.Equals(user.User.Sid)
}

// Room returns the number of bytes that are free on the disk of path.
func Room(path string) (int64, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	folder, err := windows.UTF16PtrFromString(path)
	var free uint64
	if err == nil {
		err = windows.GetDiskFreeSpaceEx(folder, &free, nil, nil)
	}
	if err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(free), nil
}

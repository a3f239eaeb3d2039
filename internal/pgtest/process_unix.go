//go:build unix

package pgtest

import "syscall"

// attributes returns the attributes of a process of another user, or in a process group of
// its own.
func attributes(as *account, group bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: group}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: uint32(as.uid), Gid: uint32(as.gid)}
	}
	return a
}

//go:build !unix

package pgtest

import "syscall"

// attributes returns none: the server belongs to the user of this process.
func attributes(*account, bool) *syscall.SysProcAttr { return nil }

//go:build !unix && !windows

package flock

import "errors"

// Try returns errors.ErrUnsupported: the system has no locks of files.
func Try(int, bool) (bool, error) { return false, errors.ErrUnsupported }

// Unlock returns errors.ErrUnsupported.
func Unlock(int) error { return errors.ErrUnsupported }

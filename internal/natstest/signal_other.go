//go:build !unix

package natstest

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
)

var errSignal = fmt.Errorf("a process cannot be paused on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func ownGroup() *syscall.SysProcAttr { return nil }

// Pause returns errors.ErrUnsupported: it needs the signals of Unix.
func (n *Node) Pause() error { return errSignal }

// Continue returns errors.ErrUnsupported.
func (n *Node) Continue() error { return errSignal }

func (n *Node) quit() error { return errSignal }

package crashfs

import (
	"io/fs"
	"math/rand/v2"
	"syscall"
)

// Fault is how an operation fails. With the zero Fault it succeeds.
type Fault struct {
	// Err is the error that the operation returns.
	Err error
	// Done makes the operation take effect although it fails.
	Done bool
	// Bytes is how many bytes of a failed write are stored.
	Bytes int
	// Lost makes a failed sync drop some of the blocks, as Linux does. Processes read
	// them until a crash, and no later sync writes them.
	Lost bool
	// Kill ends the process before the operation.
	Kill bool
}

// Full is the fault of a full disk: a write stores half of its bytes, and nothing can
// be created.
func Full(op Op) Fault {
	switch op.Kind {
	case "write":
		return Fault{Err: syscall.ENOSPC, Bytes: op.Bytes / 2}
	case "create", "mkdir", "makeroot":
		return Fault{Err: syscall.ENOSPC}
	}
	return Fault{}
}

// do numbers an operation and runs act, unless the operation fails.
func (f *FS) do(kind, name string, bytes int, act func(Fault) error) error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.killed {
		return &fs.PathError{Op: kind, Path: name, Err: ErrKilled}
	}
	d.ops++
	op := Op{N: d.ops, Kind: kind, Name: name, Bytes: bytes, Process: f.process}
	var fault Fault
	if d.fault != nil {
		fault = d.fault(op)
	}
	if fault.Kill {
		f.kill()
		return &fs.PathError{Op: kind, Path: name, Err: ErrKilled}
	}
	err := error(nil)
	if fault.Err == nil || fault.Done || fault.Bytes > 0 || fault.Lost {
		err = act(fault)
	}
	if fault.Err != nil {
		err = &fs.PathError{Op: kind, Path: name, Err: fault.Err}
	}
	if d.onOp != nil {
		d.onOp(op, d.clone)
	}
	return err
}

// chooser returns the random choices of a fault.
func (d *Disk) chooser() *chooser { return &chooser{rand.New(rand.NewPCG(0, uint64(d.ops)))} }

package crashfs

import (
	"io/fs"
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// Fault is how an operation fails. The zero Fault is none.
type Fault struct {
	// Err is what the operation answers.
	Err error
	// Done has it done all the same.
	Done bool
	// Bytes of a write are stored although it fails.
	Bytes int
	// Lost is of a sync: some of what it should have written is given up, as
	// Linux does. It is seen until a crash, and no later sync writes it.
	Lost bool
	// Kill ends the process before the operation.
	Kill bool
}

// Full is the fault of a disk without room: a write stores about half of its
// bytes, and nothing is created.
func Full(op Op) Fault {
	switch op.Kind {
	case "write":
		return Fault{Err: unix.ENOSPC, Bytes: op.Bytes / 2}
	case "create", "mkdir", "makeroot":
		return Fault{Err: unix.ENOSPC}
	}
	return Fault{}
}

// do numbers an operation and does it, unless it is to fail.
func (f *FS) do(kind, name string, bytes int, act func(Fault) error) error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.dead {
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

// lottery draws what a fault loses.
func (d *Disk) lottery() *lottery { return &lottery{rand.New(rand.NewPCG(0, uint64(d.ops)))} }

package interop

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/convlog/convlog/eventlog"
)

// errClaimed says that a later file writes to a session already. The file is
// imported again when that one is done.
var errClaimed = errors.New("another file of this import writes to the session")

// errLater says that a file asked to be imported after the others: see Later.
var errLater = errors.New("the file is imported after the others")

// together imports files that do not depend on each other, several at a time,
// and calls done with each row, one at a time. Files of one session are imported
// in their order.
func together(ctx context.Context, log *eventlog.Log, files []found, done func(file int, row Row)) {
	c := newClaims()
	rows := make([]*Row, len(files))
	var mu sync.Mutex
	var all sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	one := func(i int) (again bool) {
		row := files[i].importInto(c.of(ctx, i), log)
		c.release(i)
		mu.Lock()
		defer mu.Unlock()
		rows[i], again = &row, row.unfinished()
		if !again {
			done(i, row)
		}
		return again
	}
	for _, lane := range lanes(files) {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			for _, i := range lane {
				if ctx.Err() != nil || one(i) && !errors.Is(rows[i].Err, errLater) {
					return // the rest of the lane waits for this file
				}
			}
		})
	}
	all.Wait()
	c.goOn(ctx, log, files, rows, done)
}

// mostRounds is how often files wait for each other, before they are imported as
// they are.
const mostRounds = 4

// goOn imports one by one the files that are not done: those that wait for others
// again and again, as long as that gets any of them further.
func (c *claims) goOn(ctx context.Context, log *eventlog.Log, files []found, rows []*Row, done func(file int, row Row)) {
	var left []int
	for i, row := range rows {
		if row == nil || row.unfinished() {
			left = append(left, i)
		}
	}
	for round, last := 1, false; len(left) > 0 && ctx.Err() == nil; round++ {
		waiting, further := left, false
		left = nil
		for _, i := range waiting {
			added := c.again(ctx, log, &files[i], i, last, &rows[i])
			further = further || added
			if row := rows[i]; row == nil || row.unfinished() {
				left = append(left, i)
			} else {
				done(i, *row)
			}
		}
		last = !further && len(left) == len(waiting) || round == mostRounds
	}
	for _, i := range left { // ctx has ended: what they have added is told, and what is left is held
		if row := rows[i]; row != nil {
			row.Err = nil
			done(i, *row)
		}
	}
}

// again imports a file, once more if it has a row, which it goes on with. It waits
// for no other file if it is the last time. added says that it got further.
func (c *claims) again(ctx context.Context, log *eventlog.Log, f *found, file int, last bool, to **Row) (added bool) {
	if ctx.Err() != nil {
		return false
	}
	in := ctx
	if !last {
		in = c.of(ctx, file)
	}
	row := f.importInto(in, log)
	c.release(file)
	added = row.Imported+row.Raw > 0
	if before := *to; before != nil {
		row.goOn(before)
	}
	*to = &row
	return added
}

// unfinished reports whether the file is to be imported again.
func (r *Row) unfinished() bool {
	return errors.Is(r.Err, errClaimed) || errors.Is(r.Err, errLater)
}

// lanes are the files that are imported one after the other.
func lanes(files []found) (all [][]int) {
	known := map[string]int{}
	for i, f := range files {
		n, ok := known[f.lane]
		if !ok || f.lane == "" {
			n = len(all)
			known[f.lane] = n
			all = append(all, nil)
		}
		all[n] = append(all[n], i)
	}
	return all
}

// importInto imports a file.
func (f *found) importInto(ctx context.Context, log *eventlog.Log) Row {
	row := Row{Path: f.src.Name, Format: f.format.Name()}
	row.Result, row.Err = f.format.Import(ctx, log, f.src)
	return row
}

// goOn adds what an earlier attempt at the same file has done: to this one it was
// there already.
func (r *Row) goOn(before *Row) {
	r.Imported += before.Imported
	r.Raw += before.Raw
	r.Present -= before.Imported + before.Raw
	r.Events += before.Events
}

// claims say which file writes to which session.
type claims struct {
	mu    sync.Mutex
	freed *sync.Cond
	files map[string]int
}

func newClaims() *claims {
	c := &claims{files: map[string]int{}}
	c.freed = sync.NewCond(&c.mu)
	return c
}

// claimant is a file of a group, in the context of its import.
type claimant struct {
	*claims
	file int
}

type claimantKey struct{}

func (c *claims) of(ctx context.Context, file int) context.Context {
	return context.WithValue(ctx, claimantKey{}, claimant{c, file})
}

// claim makes the session the one of the file that ctx is of. It waits for files
// before this one, never for a later one, which may be waiting for this one.
func claim(ctx context.Context, session string) error {
	c, ok := ctx.Value(claimantKey{}).(claimant)
	if !ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		file, taken := c.files[session]
		switch {
		case !taken || file == c.file:
			c.files[session] = c.file
			return nil
		case file > c.file:
			return errClaimed
		}
		c.freed.Wait()
	}
}

// Later is an error for a Format to return from Import where a file, which is
// imported with others, has records for which another of them may have to be
// imported first. Those records are left out, and the others added: the file is
// imported once more after the others of its rank. When nothing is left to wait for,
// Later gives nil.
func Later(ctx context.Context) error {
	if _, ok := ctx.Value(claimantKey{}).(claimant); ok {
		return errLater
	}
	return nil
}

// release gives up what a file has claimed.
func (c *claims) release(file int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for session, owner := range c.files {
		if owner == file {
			delete(c.files, session)
		}
	}
	c.freed.Broadcast()
}

package main

import (
	"errors"
	"slices"

	"github.com/convlog/convlog/runlog/sink"
	"github.com/convlog/convlog/upkeep/erase"
)

// eraseOpTrees removes the op tree files in the folders of --op-trees that name a session
// with erased events, or a fork that shares them, also if they were erased before.
func (r *redactRun) eraseOpTrees(done *erase.Redaction) error {
	sessions := slices.Clone(done.Forks)
	if done.Session != "" {
		sessions = append(sessions, done.Session)
	}
	for _, e := range done.Erased {
		sessions = append(sessions, e.Session)
	}
	slices.Sort(sessions)
	sessions = slices.Compact(sessions)
	var failed error
	for _, dir := range r.opTrees {
		folder := sink.OpTreeFolder(r.app.fromHome(dir))
		paths, err := folder.Naming(sessions...)
		if !r.dry {
			err = errors.Join(err, folder.Remove(paths...))
		}
		failed = errors.Join(failed, err)
		r.removed = append(r.removed, paths...)
	}
	return failed
}

// reportOpTrees prints the removed files.
func (r *redactRun) reportOpTrees(erased string) {
	for _, path := range r.removed {
		r.Printf("%s op tree file %s\n", erased, clean(path))
	}
}

package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/internal/natstest"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		servers := natstest.Shared(t, true)
		h := harness(servers)
		h.Network = servers.Nodes[0].Clients()
		h.Parallel = true // they mostly wait for the server
		h.Sample = 1
		return h
	})
}

// Three servers keep every promise.
func TestCluster(t *testing.T) {
	t.Parallel()
	servers := natstest.Start(t, natstest.Options{Nodes: 3})
	storetest.Run(t, func(testing.TB) storetest.Harness {
		h := harness(servers)
		h.Latency = time.Millisecond
		h.Sample = 8
		return h
	})
}

var logs atomic.Int64

// harness returns the harness of a new log of the servers.
func harness(servers *natstest.Cluster) storetest.Harness {
	options := jetstream.Options{Prefix: fmt.Sprint("log", logs.Add(1)), Replicas: len(servers.Nodes), Synced: true, Connect: servers.Connect}
	reading := options
	reading.ReadOnly = true
	beside := options
	beside.Connect = connectTo(servers.Nodes[0], nil)
	return storetest.Harness{
		OpenBeside:   func() (eventlog.Store, error) { return jetstream.New("", beside) },
		Open:         func() (eventlog.Store, error) { return jetstream.New("", options) },
		OpenReadOnly: func() (eventlog.Store, error) { return jetstream.New("", reading) },
		Damage: func(session string, edit func([]string) []string) error {
			store, err := jetstream.New("", options)
			if err != nil {
				return err
			}
			return errors.Join(store.Damage(context.Background(), session, edit), store.Close())
		},
		Holds: func(text string) string { return holds(servers, options.Prefix, text) },
	}
}

// holds returns the file of a server that has text. The streams of logs with another prefix do
// not count. Files may vanish meanwhile.
func holds(servers *natstest.Cluster, prefix, text string) (where string) {
	for _, node := range servers.Nodes {
		_ = filepath.WalkDir(node.Folder(), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if entry.IsDir() {
				if filepath.Base(filepath.Dir(path)) == "streams" && !strings.HasPrefix(entry.Name(), prefix+"_") {
					return fs.SkipDir
				}
				return nil
			}
			if body, err := os.ReadFile(path); err == nil && strings.Contains(string(body), text) {
				where = path
				return fs.SkipAll
			}
			return nil
		})
	}
	return where
}

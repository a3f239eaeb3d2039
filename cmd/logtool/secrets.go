package main

import (
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/secrets"
	"github.com/convlog/convlog/store/jetstream"
	"github.com/convlog/convlog/store/jsonl"
	"github.com/convlog/convlog/store/postgres"
	"github.com/convlog/convlog/store/sqlite"
)

// screening is --secrets: what append and import do with secrets.
type screening struct {
	action string
	mu     sync.Mutex
	found  []secrets.Located // first ones
	stored int               // secrets that were stored
	masked int               // secrets that were masked
}

// The values of --secrets.
const (
	secretsIgnore = "ignore"
	secretsWarn   = "warn"
	secretsMask   = "mask"
	secretsRefuse = "refuse"
)

func (x *screening) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&x.action, "secrets", secretsIgnore, "secrets: ignore, warn, mask or refuse")
}

func (x *screening) check() error {
	if !slices.Contains([]string{secretsIgnore, secretsWarn, secretsMask, secretsRefuse}, x.action) {
		return usagef("--secrets is ignore, warn, mask or refuse, not %q", x.action)
	}
	return nil
}

// on reports whether --secrets looks for secrets.
func (x *screening) on() bool { return x.action != secretsIgnore }

// options are the hooks of the log.
func (x *screening) options() eventlog.Options {
	if x == nil {
		return eventlog.Options{}
	}
	var policy secrets.Policy
	switch x.action {
	case secretsWarn:
		policy = secrets.Policy{Scanner: secrets.Default(), Found: x.add}
	case secretsMask:
		policy = secrets.Policy{Scanner: secrets.Default(), Mask: true, Found: x.add}
	case secretsRefuse:
		policy = secrets.Policy{Scanner: secrets.Default(), Refuse: true}
	default:
		return eventlog.Options{}
	}
	return eventlog.Options{Hook: policy.Event, BodyHook: policy.Body}
}

// mostPlaces bounds the places that a warning lists.
const mostPlaces = 20

func (x *screening) add(f secrets.Located) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.found) < mostPlaces {
		x.found = append(x.found, f)
	}
	if x.action == secretsMask && !f.Unmasked {
		x.masked++
	} else {
		x.stored++
	}
}

// report prints the places on the standard error output.
func (x *screening) report(a *app) {
	for _, f := range x.found {
		state := "stored"
		if x.action == secretsMask {
			state = "masked"
			if f.Unmasked {
				state = "stored, because other events refer to it"
			}
		}
		a.note("secret %s: %s", state, clean(f.String()))
	}
	if n := x.stored + x.masked - len(x.found); n > 0 {
		a.note("%s more", thousands(n))
	}
	if x.stored > 0 {
		a.note("%s stored; logtool store scan lists them with their seqs", count(x.stored, "secret"))
	}
}

// maskFlag adds --mask-secrets to a command that prints content. It reads the log through
// place.openStore, which masks.
func (a *app) maskFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.mask, "mask-secrets", false, "show [secret:RULE] in the place of secrets")
}

// openStore opens the store at a place, with masks if the place asks for them.
func (at place) openStore(m mode) (store eventlog.Store, err error) {
	switch at.kind {
	case kindPostgres:
		store, err = postgres.New(at.path, postgres.Options{ReadOnly: m == forReading, MustExist: m != forWriting, LockTimeout: at.wait})
	case kindJetStream:
		store, err = jetstream.New(at.path, jetstream.Options{ReadOnly: m == forReading, MustExist: m != forWriting, LockTimeout: at.wait})
	case kindSQLite:
		store = sqlite.New(at.path, sqlite.Options{ReadOnly: m == forReading, LockTimeout: at.wait, NoIndex: m == forRows})
	default:
		store = jsonl.New(at.path, jsonl.Options{ReadOnly: m == forReading, LockTimeout: at.wait})
	}
	if err != nil {
		return nil, err
	}
	store = metered(store, at.progress)
	if at.mask {
		return secrets.View(store, secrets.Default()), nil
	}
	return store, nil
}

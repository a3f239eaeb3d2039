package jetstream

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Options configures a Store. The zero value opens the log "convlog" of the server of the
// URL, and creates it with one shard and one replica.
type Options struct {
	// Prefix names the log: streams are named PREFIX_…, and subjects begin with PREFIX.
	// Several logs in one account have different prefixes. A prefix has 1 to 32 letters,
	// digits, "-" or "_". "" is "convlog".
	Prefix string
	// Shards is the number of streams for sessions, at most 256. It is fixed when the
	// first write creates the log. 0 is 1 for a new log, and any number for another log.
	Shards int
	// Replicas is the number of servers that store each message: 1, 3 or 5. A log with
	// fewer replicas is refused. 0 is 1 for a new log, and any number for another log.
	Replicas int
	// ReadOnly opens the log for reading only. Writes return eventlog.ErrReadOnly, and
	// the store creates nothing.
	ReadOnly bool
	// MustExist refuses a missing log with ErrNoLog, instead of creating it. ReadOnly does
	// so too.
	MustExist bool
	// Synced says that every server of the log runs with sync_interval: always, so an
	// acknowledged message survives a power loss. A client cannot see that setting.
	// Without Synced, appends that demand durability are refused with ErrNotSynced.
	Synced bool
	// LockTimeout bounds the wait for the store lock of another process. After it the
	// error is eventlog.ErrLocked. Without a LockTimeout only the caller's context bounds
	// the wait.
	LockTimeout time.Duration
	// LeaseTime is how long a lease or a lock outlives a process that dies; 15 s if 0. It
	// is rounded up to seconds, and at least 1 s. The store renews three times in that
	// time: one message for all its leases, and one for each lock.
	LeaseTime time.Duration
	// Credentials is the path of a credentials file of NATS.
	Credentials string
	// Connect makes the connection; nats.Connect with the URL if nil. It must pass on the
	// options, and may add others. The store closes the connection.
	Connect func(options ...nats.Option) (*nats.Conn, error)
}

const (
	defaultPrefix    = "convlog"
	defaultLeaseTime = 15 * time.Second
	maxShards        = 256
	// connectTime bounds the time of one try to connect to one server.
	connectTime = 2 * time.Second
)

var (
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	errURL        = errors.New("malformed URL: write nats://USER:PASSWORD@HOST:PORT, with special characters as %XX")
)

// normalize checks the options and fills in the defaults.
func (o *Options) normalize() error {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if !prefixPattern.MatchString(o.Prefix) {
		return fmt.Errorf("prefix=%q: a prefix has 1 to 32 letters, digits, - or _", o.Prefix)
	}
	if o.Shards < 0 || o.Shards > maxShards {
		return fmt.Errorf("shards=%d: want a number from 1 to %d", o.Shards, maxShards)
	}
	if o.Replicas < 0 || o.Replicas > 5 || o.Replicas != 0 && o.Replicas%2 == 0 {
		return fmt.Errorf("replicas=%d: want 1, 3 or 5", o.Replicas)
	}
	if o.LeaseTime <= 0 {
		o.LeaseTime = defaultLeaseTime
	}
	o.LeaseTime = (o.LeaseTime + time.Second - 1).Truncate(time.Second)
	return nil
}

// parse splits a URL into the servers, as NATS takes them, and the options in its query.
// Several servers are separated by commas.
func parse(text string, o *Options) (servers string, err error) {
	text, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", errURL
	}
	for name := range values {
		if err := o.set(name, values.Get(name)); err != nil {
			return "", err
		}
	}
	for server := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil || u.Host == "" || (u.Scheme != "nats" && u.Scheme != "tls" && u.Scheme != "ws" && u.Scheme != "wss") || strings.Trim(u.Path, "/") != "" {
			return "", errURL
		}
	}
	return text, nil
}

// set sets the option of a URL.
func (o *Options) set(name, value string) (err error) {
	switch name {
	case "prefix":
		o.Prefix = value
	case "credentials":
		o.Credentials = value
	case "shards":
		o.Shards, err = strconv.Atoi(value)
	case "replicas":
		o.Replicas, err = strconv.Atoi(value)
	case "synced":
		o.Synced, err = strconv.ParseBool(value)
	default:
		return fmt.Errorf("URL: unknown option %q: the options are prefix, shards, replicas, synced and credentials", name)
	}
	if err != nil {
		return fmt.Errorf("URL: %s=%q: want a number for shards and replicas, and true or false for synced", name, value)
	}
	return nil
}

// Public returns a URL without users, passwords and tokens, for messages. It has the
// servers and the prefix. A malformed URL is an error, as of New.
func Public(text string) (string, error) {
	var o Options
	servers, err := parse(text, &o)
	if err == nil {
		err = o.normalize()
	}
	if err != nil {
		return "", err
	}
	var public []string
	for server := range strings.SplitSeq(servers, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		if err != nil {
			return "", errURL
		}
		public = append(public, u.Scheme+"://"+u.Host)
	}
	text = strings.Join(public, ",")
	if o.Prefix != defaultPrefix {
		text += "?prefix=" + o.Prefix
	}
	return text, nil
}

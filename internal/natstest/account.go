package natstest

import (
	"fmt"
	"strconv"
	"strings"
)

// Account is the account of the clients: who may connect, and how much it may store. The
// zero value lets everybody connect and has no limits.
type Account struct {
	Users        []User // without users everybody may connect
	Streams      int    // the most streams; 0 is no limit
	Bytes        int    // the most bytes in files; 0 is no limit
	SizedStreams bool   // each stream must have a limit of its bytes
	Off          bool   // the account has no JetStream
}

// User is a user of an account.
type User struct {
	Name, Password     string
	Publish, Subscribe []string // the subjects that the user may use; none is all
}

// config renders the account as lines of a configuration.
func (a *Account) config() string {
	users, anyone := a.Users, ""
	if len(users) == 0 {
		users, anyone = []User{{Name: "anyone", Password: "none"}}, "no_auth_user: anyone\n"
	}
	var b strings.Builder
	b.WriteString(anyone + "accounts { CLIENTS {\n\t" + a.limits() + "\n\tusers: [\n")
	for _, u := range users {
		fmt.Fprintf(&b, "\t\t{ user: %q, password: %q, permissions: {%s%s\n\t\t} }\n", u.Name, u.Password, allow("publish", u.Publish), allow("subscribe", u.Subscribe))
	}
	b.WriteString("\t]\n} }\n")
	return b.String()
}

// isZero reports whether the servers need no account.
func (a *Account) isZero() bool { return len(a.Users) == 0 && a.limits() == enabled }

const enabled = "jetstream: enabled"

func (a *Account) limits() string {
	limits := ""
	if a.Streams > 0 {
		limits += fmt.Sprintf(" max_streams: %d", a.Streams)
	}
	if a.Bytes > 0 {
		limits += fmt.Sprintf(" max_file: %d", a.Bytes)
	}
	if a.SizedStreams {
		limits += " max_bytes_required: true"
	}
	switch {
	case a.Off:
		return "jetstream: disabled"
	case limits != "":
		return "jetstream: {" + limits + " }"
	}
	return enabled
}

// allow renders the right to use subjects.
func allow(what string, subjects []string) string {
	if len(subjects) == 0 {
		return ""
	}
	quoted := make([]string, len(subjects))
	for i, subject := range subjects {
		quoted[i] = strconv.Quote(subject)
	}
	return fmt.Sprintf("\n\t\t\t%s: { allow: [%s] }", what, strings.Join(quoted, ", "))
}

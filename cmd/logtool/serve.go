package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/convlog/convlog/eventlog"
	"github.com/convlog/convlog/web"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	address string
	open    bool
	write   bool
	paths   bool     // --mask-paths
	expose  []string // origins
	cert    string   // --tls-cert
	key     string   // --tls-key
	tls     *tls.Config
	priceFlag
}

func (a *app) serveCommand() *cobra.Command {
	var s serveOptions
	cmd := a.command(&cobra.Command{
		Use:   "serve",
		Short: "Show the sessions on a page in the browser, live",
		Long: `Serve the sessions as pages for a browser on this machine, until interrupted. The
pages list the sessions and their costs, search them, and compare two of them. A
session has pages for its conversation, its time line, its tree of forks and
sub-agents, its files, its states at any event, and a check of its bytes. A
conversation grows with its session. A page lists what agents wait for. The pages
change no session; with --write, people answer, abort and post there. Programs read
the same at /api/v1 (GET /api/v1/openapi lists all), and change sessions with --write.

The printed addresses have a token, which is new at each start: whoever has it reads
the whole store. The first address has a name of its own, so that no other server on
this machine gets the cookie; the second one is for programs that do not know names
below localhost. A program sends the token as Authorization: Bearer TOKEN.
CONVLOG_SERVE_TOKEN sets a token of 32 characters or more.

Other machines reach the pages at the origins that --expose names, and at no other
name: with a certificate at any address, or behind a proxy with TLS on this machine.`,
		Example: "  logtool serve --open\n  logtool serve --addr 127.0.0.1:8080 --mask-secrets\n  logtool serve --addr :8443 --expose https://log.example.org:8443 --tls-cert cert.pem --tls-key key.pem",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(a); err != nil {
				return err
			}
			open := a.reading
			if s.write {
				open = a.writing
			}
			return open(func(log *eventlog.Log) error {
				if s.paths {
					return a.serveMasked(cmd.Context(), log, &s)
				}
				return a.serve(cmd.Context(), log, &s)
			})
		},
	}, traits{section: secRead, content: true})
	flags := cmd.Flags()
	flags.StringVar(&s.address, "addr", "127.0.0.1:0", addressUsage)
	flags.StringArrayVar(&s.expose, "expose", nil, "serve other machines at this `origin`, as https://log.example.org; repeatable")
	flags.StringVar(&s.cert, "tls-cert", "", "the `file` of the certificate of --expose, in PEM")
	flags.StringVar(&s.key, "tls-key", "", "the `file` of the key of --tls-cert, in PEM")
	flags.BoolVar(&s.paths, "mask-paths", false, maskPathsUsage)
	flags.BoolVar(&s.open, "open", false, "open the page in the browser")
	flags.BoolVar(&s.write, "write", false, "answer agents on the page, and let programs change sessions with the API")
	s.priceFlag.flag(cmd)
	return cmd
}

// serveTokenVariable names the variable with the token of the server.
const serveTokenVariable = "CONVLOG_SERVE_TOKEN"

func (s *serveOptions) check(a *app) error {
	switch {
	case s.write && (a.mask || s.paths):
		return usagef("--mask-secrets and --mask-paths are for reading: leave out --write")
	case a.getenv(serveTokenVariable) != "":
		if err := checkToken(serveTokenVariable, a.getenv(serveTokenVariable)); err != nil {
			return err
		}
	}
	if err := s.checkExposed(); err != nil {
		return err
	}
	return s.read()
}

// checkExposed refuses an address of other machines without TLS, and reads the certificate.
func (s *serveOptions) checkExposed() error {
	for _, origin := range s.expose {
		if !strings.HasPrefix(strings.ToLower(origin), "https://") {
			return usagef("--expose is the origin that browsers see, with https: https://log.example.org, not %q", origin)
		}
	}
	if s.cert == "" && s.key == "" {
		err := checkAddress(s.address)
		if err != nil && len(s.expose) > 0 {
			return usagef("--addr %s can be reached by other machines: give --tls-cert and --tls-key, or use 127.0.0.1 and a proxy with TLS on this machine", s.address)
		}
		return err
	}
	if len(s.expose) == 0 {
		return usagef("--tls-cert and --tls-key need --expose with the origin of the pages, as https://log.example.org")
	}
	c := &certificate{cert: s.cert, key: s.key}
	if _, err := c.get(nil); err != nil {
		return usagef("--tls-cert and --tls-key: %v", err)
	}
	s.tls = &tls.Config{GetCertificate: c.get, NextProtos: []string{"h2", "http/1.1"}}
	return nil
}

// addressUsage is the help of --addr.
const addressUsage = "listen at this `address` of this machine; port 0 is a free port"

// checkAddress refuses an --addr that other machines can reach.
func checkAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usagef("--addr is an address as 127.0.0.1:8080, not %q", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usagef("--addr %s can be reached by other machines: use 127.0.0.1 and a tunnel (ssh -L) from elsewhere, or --expose with a certificate", address)
	}
	return nil
}

// servedAt is where the pages are, with --json.
type servedAt struct {
	URL      string `json:"url"`
	PlainURL string `json:"plain_url,omitzero"`
}

// serveMasked serves the sessions without the names of people and of places.
func (a *app) serveMasked(ctx context.Context, log *eventlog.Log, s *serveOptions) error {
	sessions, err := a.sessions(ctx, log, nil, true)
	if err != nil {
		return err
	}
	m, err := maskPaths(ctx, log, sessions)
	if err != nil {
		return err
	}
	a.masked(&m, "the pages still show names of other people, hosts, repositories and folders below ~,\nand names and folders that are new after this start")
	return a.serve(ctx, m.log, s)
}

func (a *app) serve(ctx context.Context, log *eventlog.Log, s *serveOptions) error {
	a.boundServer()
	h, err := web.New(log, web.Options{Origins: s.expose, Prices: s.table, Zone: time.Local, Writable: a.writable, Write: s.write, By: a.user(""), Token: a.getenv(serveTokenVariable)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	at := servedAt{URL: h.URL(listener.Addr().String())}
	if len(s.expose) == 0 {
		at.PlainURL = h.PlainURL(listener.Addr().String())
	}
	if s.tls != nil {
		listener = tls.NewListener(listener, s.tls)
	}
	if err := a.answer(at, func(p *printer) { p.Printf("%s\n", strings.TrimSpace(at.URL+"\n"+at.PlainURL)) }); err != nil {
		return errors.Join(err, listener.Close())
	}
	if s.open {
		remove, err := openBrowser(at.URL)
		defer remove()
		if err != nil {
			a.note("the browser does not open (%v): open the address above", err)
		}
	}
	return serveUntil(ctx, listener, h)
}

// The bounds of a connection.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	headerSize = 64 << 10
	closeTime  = time.Second
)

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, listener net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: headerSize,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		if server.Shutdown(end) != nil {
			_ = server.Close() // clients that do not go
		}
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// openBrowser opens an address in the browser of the user. Other users can see the arguments of
// a program, so the browser gets a file that leads to the address. remove removes the file.
func openBrowser(address string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "logtool-serve-") // of this user alone
	if err != nil {
		return func() {}, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // of a temporary folder
	file := filepath.Join(dir, "open.html")
	text := `<!DOCTYPE html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=` + html.EscapeString(address) + `">`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return remove, err
	}
	name, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		return remove, err
	}
	go func() { _ = cmd.Wait() }() // the browser lives on
	return remove, nil
}

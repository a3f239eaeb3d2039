package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/convlog/convlog/cmd/logtool/internal/mcplog"
)

// mcpTokenVariable names the variable with the token of the server.
const mcpTokenVariable = "CONVLOG_MCP_TOKEN"

// shortestToken is the length of a token that is hard to guess.
const shortestToken = 32

// checkToken refuses a token of a variable that is easy to guess.
func checkToken(variable, token string) error {
	if len(token) < shortestToken {
		return usagef("the token in %s is shorter than %d characters: give a longer one, or leave it out", variable, shortestToken)
	}
	return nil
}

// mcpServed says where the server is, with --json.
type mcpServed struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// mcpOverHTTP serves at an address of this machine until ctx ends.
func (a *app) mcpOverHTTP(ctx context.Context, server *mcplog.Server, address string) error {
	token := cmp.Or(a.getenv(mcpTokenVariable), mcplog.NewToken())
	if err := checkToken(mcpTokenVariable, token); err != nil {
		return err
	}
	if err := checkAddress(address); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	at := mcpServed{"http://" + listener.Addr().String() + mcplog.Path, token}
	if err := a.answer(at, func(p *printer) { p.Printf("%s\nAuthorization: Bearer %s\n", at.URL, at.Token) }); err != nil {
		return errors.Join(err, listener.Close())
	}
	return serveUntil(ctx, listener, server.Handler(token))
}

package mcplog

import (
	"context"
	"errors"
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Serve serves one client over its input and output until the input ends or ctx does.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	err := s.server.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: keepOpen{out}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// keepOpen is an output that its owner closes.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

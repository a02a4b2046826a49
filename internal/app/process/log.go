// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// NewLog returns a logger. Format "auto" means text on a terminal, else JSON. Verbosity 1 enables debug level
// (logr's V(1) to V(4)); each further step enables four more levels.
func NewLog(out io.Writer, format string, verbosity int) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.LevelDebug * slog.Level(verbosity)}
	if format == "auto" {
		format = "json"
		if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(requestIDHandler{slog.NewTextHandler(out, opts)}), nil
	case "json":
		return slog.New(requestIDHandler{slog.NewJSONHandler(out, opts)}), nil
	}
	return nil, fmt.Errorf("log format %q: use auto, text or json", format)
}

// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// NewLog returns a logger: text where out is a terminal, JSON otherwise, unless
// format ("auto", "text" or "json") says it. Verbosity 0 is for operators, 1 shows
// slog's debug level too, which says why nothing was done (logr's V(1) to V(4)), and
// each more shows four levels more.
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
		return slog.New(namesRequests{slog.NewTextHandler(out, opts)}), nil
	case "json":
		return slog.New(namesRequests{slog.NewJSONHandler(out, opts)}), nil
	}
	return nil, fmt.Errorf("log format %q: use auto, text or json", format)
}

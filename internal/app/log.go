// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// NewLog returns a logger: text where out is a terminal, JSON otherwise, unless
// format ("auto", "text" or "json") says it. Verbosity n shows what is logged at
// V(n) and below; 0 is for operators, 1 says why nothing happened, 2 and more is
// for those who write Weir.
func NewLog(out io.Writer, format string, verbosity int) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: slog.Level(-verbosity)}
	if format == "auto" {
		format = "json"
		if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			format = "text"
		}
	}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(out, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(out, opts)), nil
	}
	return nil, fmt.Errorf("log format %q: use auto, text or json", format)
}

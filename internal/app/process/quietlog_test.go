// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// Lifecycle messages are debug level; errors are not.
func TestLifecycleMessagesAreDebugLevel(t *testing.T) {
	for level, shown := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
		var out bytes.Buffer
		log := logr.FromSlogHandler(quietHandler{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})}).WithName("manager").WithValues("a", "b")
		log.Info("Starting workers", "worker count", 1)
		if got := out.String(); strings.Contains(got, "level=DEBUG") != shown || (got != "") != shown {
			t.Errorf("at %s: %q", level, got)
		}
		log.Info("Successfully acquired lease")
		log.Error(errors.New("boom"), "Starting workers")
		if got := out.String(); !strings.Contains(got, "level=INFO") || !strings.Contains(got, "level=ERROR") {
			t.Errorf("at %s: %q", level, got)
		}
	}
}

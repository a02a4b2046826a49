// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// Releasing leadership at shutdown is not an error; losing it is, and so are other errors at shutdown.
func TestCleanStopLogsNoError(t *testing.T) {
	var out bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := logr.FromSlogHandler(stopHandler{slog.NewTextHandler(&out, nil), ctx}).WithName("manager").WithValues("a", "b")
	for _, tt := range []struct {
		text, message string
		reported      bool
		want          string
	}{
		{leadershipLostMessage, afterStopMessage, false, "ERROR"},
		{leadershipLostMessage, afterStopMessage, true, "INFO"},
		{leadershipLostMessage, "problem running manager", true, "ERROR"},
		{"the API server is gone", afterStopMessage, true, "ERROR"},
	} {
		if tt.reported {
			stop()
		}
		out.Reset()
		log.Error(errors.New(tt.text), tt.message)
		if got := out.String(); !strings.Contains(got, "level="+tt.want) || tt.want == "INFO" && strings.Contains(got, leadershipLostMessage) {
			t.Errorf("%s, %s, told to stop %v: %s", tt.text, tt.message, tt.reported, got)
		}
	}
}

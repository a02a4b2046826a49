// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
)

// Lines with a wrapped Azure error get its request IDs; other lines do not.
func TestTheLogNamesRequests(t *testing.T) {
	azures := &armerror.Fault{Code: "Conflict", RequestID: "r1", CorrelationID: "c1", Err: errors.New("409 Conflict")}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{azures, `err="409 Conflict" requestID=r1 correlationID=c1`},
		{fmt.Errorf("look: %w", &armerror.Fault{Code: "NotRead", Err: azures}), `err="look: 409 Conflict" requestID=r1 correlationID=c1`},
		{&armerror.Fault{Code: "Conflict", RequestID: "r1"}, `requestID=r1`},
		{errors.New("no API server"), `err="no API server"`},
	} {
		var out bytes.Buffer
		log, err := NewLog(&out, "text", 0)
		if err != nil {
			t.Fatal(err)
		}
		log.WithGroup("g").With("a", 1).Warn("not in sync", "pool", "shop/web", "err", tt.err)
		got := strings.ReplaceAll(strings.TrimSpace(out.String()), "g.", "")
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("%s\nwant at its end %s", got, tt.want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package services

import (
	"errors"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
)

// The event of an error that does not resolve by itself names the command with the fix.
func TestAdviceOfFailures(t *testing.T) {
	terminal := &armerror.Fault{Class: armerror.Terminal, Err: errors.New("403")}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"shop/web", terminal, ". To see what to do: weir explain service web -n shop"},
		{"shop/" + cache.GatewayServiceName("edge"), terminal, ". To see what to do: weir explain gateway edge -n shop"},
		{"shop/web", &armerror.Fault{Class: armerror.Retriable}, ""},
		{"shop/web", errors.New("invalid"), ""},
	} {
		if got := failureAdvice(servicelb.Service{Name: tt.name}, tt.err); got != tt.want {
			t.Errorf("%s, %v: %q, want %q", tt.name, tt.err, got, tt.want)
		}
	}
}

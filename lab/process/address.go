// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"net"
)

// FreeAddresses returns addresses of this machine at which nobody listens, no two the same:
// each is held until all are found.
func FreeAddresses(ctx context.Context, n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // nothing was accepted
		all[i] = listener.Addr().String()
	}
	return all, nil
}

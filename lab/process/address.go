// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"fmt"
	"net"
)

// FreeAddresses returns n different free loopback addresses.
func FreeAddresses(ctx context.Context, n int) ([]string, error) {
	all := make([]string, n)
	for i := range all {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer func() { _ = listener.Close() }() // no connections
		all[i] = listener.Addr().String()
	}
	return all, nil
}

// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports below the range from which Linux takes those of outgoing connections: a port that is free now is not taken by
// one of these before the program listens.
const (
	firstPort, ports = 12_000, 20_000
	maxTries         = 1000
)

// FreeAddresses returns n different free loopback addresses.
func FreeAddresses(ctx context.Context, n int) ([]string, error) {
	addresses := make([]string, 0, n)
	var last error
	for range maxTries {
		if len(addresses) == n {
			return addresses, nil
		}
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(ports)) //nolint:gosec // no secret
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			last = err
			continue
		}
		defer func() { _ = listener.Close() }() // no connections
		addresses = append(addresses, address)
	}
	if len(addresses) == n {
		return addresses, nil
	}
	return nil, errors.Join(errors.New("no free port was found"), last)
}
